import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { deleteOldOutcomes, foldOutcomes, recordOutcomes } from './outcome.store.ts'
import { EVERYTHING } from './outcome-keys.ts'

const DAY = new Date('2026-09-11T00:00:00.000Z')
const at = (ms: number) => new Date(DAY.getTime() + ms)
const [ONE, TWO, ACCOUNT, OTHER] = Array.from({ length: 4 }, () => randomUUID() as string) as [
  string,
  string,
  string,
  string,
]

const database = await openForFile(createTestDatabase())
beforeEach(() =>
  database.pool.query(
    'truncate webhook_outcome, webhook_outcome_batch, webhook_outcome_hour, webhook_outcome_day, webhook_breakdown',
  ),
)

interface Attempt {
  webhook?: string
  owner?: string | null
  account?: string | null
  event?: string
  status?: string
  error_class?: string
  status_code?: number | null
  duration_ms?: number
  ended_at?: Date
}

/** Records attempts, in one row of the batches. */
async function record(...attempts: Attempt[]) {
  const rows = attempts.map((attempt) => ({
    ...{ webhook: ONE, owner: ACCOUNT, account: ACCOUNT, event: 'a', status: 'success', error_class: 'http_2xx' },
    ...{ status_code: 200, duration_ms: 10, ended_at: at(0), ...attempt },
  }))
  const claim = `jsonb_to_recordset($1::jsonb) as x (webhook uuid, owner uuid, account uuid, event text, status text,
    error_class text, status_code int, duration_ms int, ended_at timestamptz)`
  await database.pool.query(`with claim as (select * from ${claim}) ${recordOutcomes('claim')}`, [JSON.stringify(rows)])
}

const readBatches = async () => (await database.pool.query('select * from webhook_outcome_batch order by number')).rows
const readCounts = async (scope: string, width: string) => {
  const text = `select at, measure, count::int from webhook_outcome where scope = $1 and width = $2 order by at, measure`
  const { rows } = await database.pool.query(text, [scope, width])
  return rows.map((row) => [row.at.getTime() - DAY.getTime(), row.measure, row.count])
}

test('attempts are recorded in one row, by the latest of their ends, and none without an attempt', async () => {
  await record({ ended_at: at(1) }, { ended_at: at(3) }, { ended_at: at(2), status: 'failed', error_class: 'http_5xx' })
  await record()
  expect(await readBatches()).toMatchObject([
    {
      settled_at: at(3),
      statuses: expect.arrayContaining(['success', 'failed']),
      counts: expect.arrayContaining([2, 1]),
    },
  ])
})

test('an attempt counts for the account of its webhook where the delivery is of it, and its time where it was answered', async () => {
  await record({}, { account: OTHER, webhook: TWO, status_code: null, error_class: 'timeout', status: 'retrying' })
  const [row] = await readBatches()
  const of = (webhook: string) => row.webhooks.indexOf(webhook)
  expect([row.owners[of(ONE)], row.owners[of(TWO)]]).toEqual([ACCOUNT, null])
  expect([row.durations[of(ONE)], row.durations[of(TWO)]]).toEqual([1, null])
})

test('batches are added up once, the oldest first, for everything and for their accounts', async () => {
  await record({}, {}, { status: 'retrying', error_class: 'http_5xx' })
  await record({ owner: null, account: OTHER, ended_at: at(60_000) })
  expect(await foldOutcomes(database.db, { limit: 1 })).toBe(1)
  expect(await readBatches()).toHaveLength(1)
  expect(await foldOutcomes(database.db, { limit: 5 })).toBe(1)
  expect(await foldOutcomes(database.db, { limit: 5 })).toBe(0)
  const first = [
    ...[
      [0, 'cause:http_2xx', 2],
      [0, 'cause:http_5xx', 1],
      [0, 'duration:1', 3],
    ],
    ...[
      [0, 'retrying', 1],
      [0, 'success', 2],
    ],
  ]
  const last = [
    [60_000, 'cause:http_2xx', 1],
    [60_000, 'duration:1', 1],
    [60_000, 'success', 1],
  ]
  expect(await readCounts(ACCOUNT, 'minute')).toEqual(first)
  expect(await readCounts(EVERYTHING, 'minute')).toEqual([...first, ...last])
  for (const width of ['hour', 'quarter', 'day'])
    expect(await readCounts(EVERYTHING, width)).toContainEqual([0, 'success', 3])
  const { rows: hours } = await database.pool.query('select * from webhook_outcome_hour')
  expect(hours).toMatchObject([{ webhook: ONE, event: 'a', success: 3, retrying: 1, failed: 0, last_at: at(60_000) }])
  const { rows: breakdown } = await database.pool.query(
    'select subject, measure, attempts::int, failed::int from webhook_breakdown order by subject, measure',
  )
  expect(breakdown).toEqual(
    expect.arrayContaining([
      { subject: ONE, measure: 'answer:http_5xx', attempts: 1, failed: 1 },
      { subject: ACCOUNT, measure: 'event:a', attempts: 3, failed: 1 },
      { subject: EVERYTHING, measure: 'event:a', attempts: 4, failed: 1 },
    ]),
  )
  expect(breakdown).toHaveLength(3)
})

test.each([
  ['webhook_outcome_hour', 'webhook_breakdown'],
  ['webhook_outcome_hour', 'webhook_outcome'],
  ['webhook_breakdown', 'webhook_outcome'],
])('sums of %s are locked before those of %s, so that no two processes wait for each other', async (first, then) => {
  const { db } = database
  const failed = { status: 'failed', error_class: 'http_5xx' }
  await record(failed)
  await foldOutcomes(db, { limit: 1 })
  await record(failed)
  const lock = (tx: Database, table: string) => sql`select from ${sql.table(table)} for update`.execute(tx)
  const { folded } = await inTransaction(db, async (tx) => {
    await lock(tx, first)
    const fold = foldOutcomes(db, { limit: 1 })
    await untilWaiting(db, 1)
    await lock(tx, then)
    return { folded: fold }
  })
  expect(await folded).toBe(1)
})

test('an attempt that ended before what was added up leaves the time of the last one', async () => {
  await record({ ended_at: at(9) })
  await foldOutcomes(database.db, { limit: 1 })
  await record({ ended_at: at(1), status: 'exhausted' }, { ended_at: at(1), status: 'failed', error_class: 'timeout' })
  await foldOutcomes(database.db, { limit: 1 })
  const { rows } = await database.pool.query('select success, failed, last_at from webhook_outcome_hour')
  expect(rows).toEqual([{ success: 1, failed: 2, last_at: at(9) }])
})

test('the sums of each width are deleted from before their instant, in batches, the oldest first', async () => {
  const { pool, db } = database
  const widths = ['minute', 'hour', 'quarter', 'day']
  for (const width of widths)
    for (const ms of [-1, -2, 0])
      await pool.query('insert into webhook_outcome values ($1, $2, $3, $4, 1)', [EVERYTHING, width, at(ms), 'success'])
  const read = async (width: string) => (await readCounts(EVERYTHING, width)).map(([ms]) => ms)
  const never = { minutes: at(-9), hours: at(-9), quarters: at(-9), days: at(-9) }
  for (const [index, name] of (['minutes', 'hours', 'quarters', 'days'] as const).entries()) {
    const before = { ...never, [name]: at(0) }
    expect(await deleteOldOutcomes(db, { ...before, limit: 1 })).toBe(1)
    expect(await read(widths[index]!)).toEqual([-1, 0])
    expect(await deleteOldOutcomes(db, { ...before, limit: 5 })).toBe(1)
    expect(await read(widths[index]!)).toEqual([0])
    for (const later of widths.slice(index + 1)) expect(await read(later)).toEqual([-2, -1, 0])
  }
})
