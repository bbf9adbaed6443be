import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { widenBreakdowns } from './breakdown.store.ts'

const DAY = new Date('2026-09-11T00:00:00.000Z')
const at = (minutes: number) => new Date(DAY.getTime() + minutes * 60_000)
const NEVER = new Date(0)
const [ONE, TWO] = [randomUUID(), randomUUID()] as string[] as [string, string]

const database = await openForFile(createTestDatabase())
beforeEach(() => database.pool.query('truncate webhook_breakdown, webhook_outcome_hour, webhook_outcome_day'))

const widen = (before: Partial<Parameters<typeof widenBreakdowns>[1]>, limit = 100) =>
  widenBreakdowns(database.db, { fiveMinutes: NEVER, hours: NEVER, days: NEVER, ...before }, limit)

type Sum = readonly [subject: string, minutes: number, width: string, measure: string, attempts: number, failed: number]

async function put(...sums: Sum[]) {
  for (const [subject, minutes, ...rest] of sums)
    await database.pool.query(
      'insert into webhook_breakdown (subject, at, width, measure, attempts, failed) values ($1, $2, $3, $4, $5, $6)',
      [subject, at(minutes), ...rest],
    )
}
async function read(): Promise<Sum[]> {
  const { rows } = await database.pool.query(
    `select subject, extract(epoch from at - $1)::int / 60 as minutes, width, measure, attempts::int, failed::int
     from webhook_breakdown order by width, minutes, measure, subject <> $2`,
    [DAY, ONE],
  )
  return rows.map((row) => [row.subject, row.minutes, row.width, row.measure, row.attempts, row.failed] as const)
}

test('sums of five minutes become those of their hours, and these of their days, beside what is there', async () => {
  await put(
    [ONE, 0, 'five_minutes', 'event:a', 3, 1],
    [ONE, 5, 'five_minutes', 'event:a', 4, 2],
    [TWO, 5, 'five_minutes', 'event:a', 5, 0],
    [ONE, 5, 'five_minutes', 'event:b', 6, 6],
    [ONE, 65, 'five_minutes', 'event:a', 7, 0],
    [ONE, 0, 'hour', 'event:a', 10, 5],
  )
  expect(await widen({ fiveMinutes: at(65) })).toBe(4)
  const hours: Sum[] = [
    [ONE, 0, 'hour', 'event:a', 17, 8],
    [TWO, 0, 'hour', 'event:a', 5, 0],
    [ONE, 0, 'hour', 'event:b', 6, 6],
  ]
  const left: Sum = [ONE, 65, 'five_minutes', 'event:a', 7, 0]
  expect(await read()).toEqual([left, ...hours])
  await put([ONE, 60, 'hour', 'event:a', 1, 1], [ONE, 0, 'day', 'event:b', 1, 1])
  expect(await widen({ hours: at(60) })).toBe(3)
  expect(await read()).toEqual([
    [ONE, 0, 'day', 'event:a', 17, 8],
    [TWO, 0, 'day', 'event:a', 5, 0],
    [ONE, 0, 'day', 'event:b', 7, 7],
    left,
    [ONE, 60, 'hour', 'event:a', 1, 1],
  ])
})

test('sums of days are deleted once they are old, in batches, the oldest first', async () => {
  const days = [3, 1, 2].map((day): Sum => [ONE, day * 1440, 'day', 'event:a', 1, 1])
  await put(...days, [ONE, 0, 'hour', 'event:a', 1, 1], [ONE, 0, 'five_minutes', 'event:a', 1, 1])
  const minutesOfDays = async () =>
    (await read()).filter(([, , width]) => width === 'day').map(([, minutes]) => minutes)
  expect(await widen({ days: at(3 * 1440) }, 1)).toBe(1)
  expect(await minutesOfDays()).toEqual([2 * 1440, 3 * 1440])
  expect(await widen({ days: at(3 * 1440) })).toBe(1)
  expect(await minutesOfDays()).toEqual([3 * 1440])
  expect(await read()).toHaveLength(3)
})

test('attempts of webhooks by hour become those of their days, which are deleted once they are old', async () => {
  const { pool } = database
  const hour = (webhook: string, minutes: number, event: string, counts: readonly [number, number, number]) =>
    pool.query(
      `insert into webhook_outcome_hour (webhook, hour, event, success, retrying, failed, last_at)
       values ($1, $2, $3, $4, $5, $6, $2)`,
      [webhook, at(minutes), event, ...counts],
    )
  const readDays = async () => {
    const { rows } = await pool.query(
      `select webhook, extract(epoch from day - $1)::int / 60 as minutes, event, attempts::int, failed::int
       from webhook_outcome_day order by minutes, event, webhook <> $2`,
      [DAY, ONE],
    )
    return rows.map((row) => [row.webhook, row.minutes, row.event, row.attempts, row.failed])
  }
  await hour(ONE, 60, 'a', [1, 2, 4])
  await hour(ONE, 120, 'a', [8, 16, 32])
  await hour(TWO, 60, 'a', [1, 0, 0])
  await hour(ONE, 60, 'b', [0, 1, 0])
  await hour(ONE, 180, 'a', [1, 1, 1])
  expect(await widen({ hours: at(180) })).toBe(4)
  expect(await readDays()).toEqual([
    [ONE, 0, 'a', 63, 54],
    [TWO, 0, 'a', 1, 0],
    [ONE, 0, 'b', 1, 1],
  ])
  expect(await widen({ hours: at(181) })).toBe(1)
  expect(await readDays()).toContainEqual([ONE, 0, 'a', 66, 56])
  await hour(ONE, 1440, 'a', [1, 0, 0])
  await widen({ hours: at(1500) })
  expect(await widen({ days: at(1440) }, 2)).toBe(2)
  expect(await widen({ days: at(1440) })).toBe(1)
  expect(await readDays()).toEqual([[ONE, 1440, 'a', 1, 0]])
})

test('a sum that another transaction holds is left for later', async () => {
  const sums = ['five_minutes', 'hour', 'day'].map((width): Sum => [ONE, 0, width, 'event:a', 1, 1])
  await put(...sums)
  const { pool } = database
  await pool.query(`insert into webhook_outcome_hour values ($1, $2, 'a', 1, 0, 0, $2)`, [ONE, at(0)])
  await pool.query(`insert into webhook_outcome_day values ($1, $2, 'b', 1, 0)`, [ONE, at(0)])
  const other = await pool.connect()
  const all = { fiveMinutes: at(1), hours: at(1), days: at(1) }
  try {
    await other.query('begin')
    for (const table of ['webhook_breakdown', 'webhook_outcome_hour', 'webhook_outcome_day'])
      await other.query(`select from ${table} for update`)
    expect(await widen(all)).toBe(0)
  } finally {
    await other.query('rollback')
    other.release()
  }
  expect(await widen(all)).toBe(2)
})
