import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { inTransaction } from '../../src/postgres/statement/database.ts'
import { claimRunningJob } from '../../src/webhook/replay/replay-job.store.ts'
import type { ReplayJobId } from '../../src/webhook/replay/replay-job-record.ts'
import { buildReplayWorker } from '../../src/webhook/replay/replay-job-worker.ts'
import type { TestCall } from '../harness/app/app.ts'
import { type GroundPlace, type MergedGround, openMergedGround } from '../harness/carriage/merged-ground.ts'

const JOBS = '/api/v3/webhook/replay-job'
const PLACES: readonly GroundPlace[] = [null, 'c1', 'c2']
const NOW = new Date().toISOString()

let ground: MergedGround
/** Two accounts that were in home when their job was made, and are in a cell each since. */
let [first, second]: string[] = []
/** One that stayed, and the deliveries of the job. */
let kept: string
const deliveries = new Map<string, string>()
let both: TestCall

beforeAll(async () => {
  ground = await openMergedGround()
  ;[first, second, kept] = [await ground.addAccount('c1'), await ground.addAccount('c2'), await ground.addAccount(null)]
  for (const place of PLACES) {
    const { pool } = ground.at(place)
    for (const account of [first, kept]) await addDelivery(place, account as string)
    await pool.query('select open_fence()')
    for (const [account, at] of [
      [first, 'c1'],
      [second, 'c2'],
      [kept, null],
    ])
      await pool.query('insert into account_fence (account, version, state) values ($1, 1, $2)', [
        account,
        at === place ? 'open' : 'gone',
      ])
  }
  both = (await ground.merged.signInWithRoles([first, second] as string[], ['account-admin'])).call
}, 300_000)
afterAll(() => ground?.[Symbol.asyncDispose]())

/** The first account left its delivery in home, whose rows are deleted after the move. */
async function addDelivery(place: GroundPlace, account: string): Promise<void> {
  if (place === 'c2' || (place === 'c1' && account === kept)) return
  const [webhook, delivery] = [randomUUID(), deliveries.get(account) ?? randomUUID()]
  deliveries.set(account, delivery)
  const { pool } = ground.at(place)
  await pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, created_at, updated_at)
     values ($1, 'https://a.example/', $2, '', now(), now())`,
    [webhook, account],
  )
  const event = randomUUID()
  await pool.query(
    `insert into event_occurrence (document_id, event, resource, action, account, created_at, routed_at)
     values ($1, 'order.create', 'order', 'create', $2, now(), now())`,
    [event, account],
  )
  await pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at, updated_at,
       ended_at, worker, last_attempt_at, last_duration_ms)
     values ($1, $2, $3, 'order.create', $4, 'exhausted', 5, now(), now(), now(), 'w', now(), 7)`,
    [delivery, webhook, event, account],
  )
}

/** Writes a job into a database as if it had been made there before its accounts moved. */
async function addJob(place: GroundPlace, accounts: string[], items: string[] = []): Promise<string> {
  const id = randomUUID()
  const client = await ground.at(place).pool.connect()
  try {
    await client.query('begin')
    await client.query('alter table replay_job disable trigger fence')
    await client.query(
      `insert into replay_job (document_id, status, filters, confirm_duplicate, total, accounts, created_at, updated_at)
       values ($1, 'running', '{}', true, $2, $3, $4, $4)`,
      [id, items.length, accounts, NOW],
    )
    await client.query(
      `insert into replay_job_item (job, position, dispatch)
       select $1, n, d from unnest($2::uuid[]) with ordinality x (d, n)`,
      [id, items],
    )
    await client.query('alter table replay_job enable trigger fence')
    await client.query('commit')
  } finally {
    client.release()
  }
  return id
}

const list = async (call: TestCall) =>
  (await call('GET', `${JOBS}?count=true`)).body as { data: { document_id: string }[]; pagination: { total: number } }

test('a job of accounts that live apart since is listed, read and moved where it was made, by callers of all of them', async () => {
  const [inHome, inCell] = [
    await addJob(null, [first, second] as string[]),
    await addJob('c1', [second, first] as string[]),
  ]
  // What a move left in the list's way, and what others have.
  await addJob(null, [first as string])
  const foreign = await addJob(null, [first, kept] as string[])
  const single = await addJob('c2', [second as string])
  const found = await list(both)
  expect(found.data.map((job) => job.document_id).sort()).toEqual([inHome, inCell, single].sort())
  expect(found.pagination.total).toBe(3)
  for (const id of [inHome, inCell]) {
    expect((await both('GET', `${JOBS}/${id}`)).body.data).toMatchObject({ document_id: id, status: 'running' })
    for (const [move, status] of [
      ['pause', 'paused'],
      ['resume', 'running'],
      ['cancel', 'cancelled'],
    ]) {
      const { status: code, body } = await both('POST', `${JOBS}/${id}/${move}`)
      expect([move, code, body.data?.status]).toEqual([move, 200, status])
    }
  }
  expect((await both('GET', `${JOBS}/${foreign}`)).status).toBe(404)
  const alone = (await ground.merged.signInWithRoles([first as string], ['account-admin'])).call
  expect((await list(alone)).data).toEqual([])
  for (const id of [inHome, inCell]) {
    expect((await alone('GET', `${JOBS}/${id}`)).status).toBe(404)
    expect((await alone('POST', `${JOBS}/${id}/cancel`)).status).toBe(404)
  }
})

test('it goes on in its database alone, without the rows of the account that moved', async () => {
  const ids = [deliveries.get(first as string), deliveries.get(kept)] as string[]
  const job = await addJob(null, [first, kept] as string[], ids)
  for (const place of PLACES) {
    const worker = buildReplayWorker({
      ...{ db: ground.at(place).db, clock: systemClock, logger: pino({ level: 'silent' }), workerId: 'w' },
      isTrusted: () => true,
      onQueued: () => {},
    })
    await worker.drain()
  }
  const { rows } = await ground
    .at(null)
    .pool.query(
      'select status, processed, replayed, skipped_reasons, failures from replay_job where document_id = $1',
      [job],
    )
  expect(rows).toEqual([{ status: 'done', processed: 2, replayed: 1, skipped_reasons: { gone: 1 }, failures: 0 }])
  const readOpen = async (place: GroundPlace) =>
    (await ground.at(place).pool.query('select document_id from webhook_dispatch_open')).rows.map(
      (row) => row.document_id,
    )
  expect([await readOpen(null), await readOpen('c1'), await readOpen('c2')]).toEqual([[deliveries.get(kept)], [], []])
  for (const place of ['c1', 'c2'] as const)
    expect((await ground.at(place).pool.query('select from replay_job where document_id = $1', [job])).rowCount).toBe(0)
})

describe.each(['one account', 'two accounts'])('a job of %s, one of which is being moved,', (of) => {
  const open = async () => {
    const { db, pool } = ground.at('c1')
    deliveries.delete(first as string)
    await addDelivery('c1', first as string)
    const accounts = of === 'one account' ? [first] : [first, second]
    const job = await addJob('c1', accounts as string[], [deliveries.get(first as string) as string])
    const worker = buildReplayWorker({
      ...{ db, clock: systemClock, logger: pino({ level: 'silent' }), workerId: 'w' },
      isTrusted: () => true,
      onQueued: () => {},
    })
    const read = async () => {
      const members = 'status, processed, replayed, skipped, failures, last_error'
      return (await pool.query(`select ${members} from replay_job where document_id = $1`, [job])).rows
    }
    const setFence = (state: string) =>
      pool.query('update account_fence set state = $2 where account = $1', [first, state])
    return { db, pool, job, worker, read, setFence }
  }

  test('waits until it is open, and leaves no row out', async () => {
    const { worker, read, setFence } = await open()
    await setFence('closed')
    await worker.drain()
    await setFence('open')
    const none = { failures: 0, last_error: null, skipped: 0 }
    expect(await read()).toEqual([{ ...none, status: 'running', processed: 0, replayed: 0 }])
    await worker.drain()
    expect(await read()).toEqual([{ ...none, status: 'done', processed: 1, replayed: 1 }])
  })

  test('lets no move begin in the middle of a step', async () => {
    const { db, pool, job } = await open()
    const key = `hashtextextended('signalbox account ' || $1, 0)`
    const mayMove = async () =>
      (await pool.query(`select pg_try_advisory_xact_lock(${key}) as may`, [first])).rows[0].may as boolean
    await inTransaction(db, async (tx) => {
      expect(await claimRunningJob(tx, job as ReplayJobId)).toMatchObject({ id: job })
      expect(await mayMove()).toBe(false)
    })
    expect(await mayMove()).toBe(true)
    await pool.query('delete from replay_job where document_id = $1', [job])
  })
})
