import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type ContractFixture,
  type ContractWebhook,
  startContractFixture,
} from '../../../test/contract/contract-fixture.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'
import {
  buildReplayWorker,
  REPLAY_BATCH_SIZE,
  REPLAYS_ON_THEIR_WAY_LIMIT,
  type ReplayWorkerDeps,
} from './replay-job-worker.ts'

const JOBS = '/api/v3/webhook/replay-job'

let fixture: ContractFixture
let webhook: ContractWebhook

beforeEach(async () => {
  fixture = await startContractFixture()
  webhook = await fixture.createWebhook({ account: (await fixture.createAccount()).document_id })
})
afterEach(() => fixture[Symbol.asyncDispose]())

async function addExhausted(count: number): Promise<void> {
  await fixture.app.database.pool.query(
    `with written as (
       insert into webhook_dispatch_ended
         (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'past.done', 'exhausted', 5, $2, $2, $2
       from generate_series(1, $3::int) n returning event_id)
     insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
     select event_id, 'past.done', 'past', 'done', $2, $2 from written`,
    [webhook.id, new Date(fixture.app.clock.now() - 60_000), count],
  )
}

async function makeJob(): Promise<string> {
  const answer = await fixture.app.admin('POST', '/api/v3/webhook/dispatch/replay', {
    filters: ['status|eq|exhausted'],
  })
  expect(answer.status).toBe(202)
  return answer.body.data.document_id
}

function buildWorker(over: Partial<ReplayWorkerDeps> = {}) {
  return buildReplayWorker({
    db: fixture.app.database.db,
    clock: fixture.app.clock,
    isTrusted: () => true,
    logger: pino({ level: 'silent' }),
    workerId: 'worker',
    onQueued: () => {},
    ...over,
  })
}

const job = async (id: string) => (await fixture.app.admin('GET', `${JOBS}/${id}`)).body.data
const move = async (id: string, name: string) =>
  expect((await fixture.app.admin('POST', `${JOBS}/${id}/${name}`)).status).toBe(200)

/** How many rows of the ledger have had each number of POSTs. */
async function countAttempts(): Promise<Record<number, number>> {
  const { rows } = await fixture.app.database.pool.query(
    'select attempts, count(*)::int as n from webhook_dispatch group by attempts order by attempts',
  )
  return Object.fromEntries(rows.map((row) => [row.attempts, row.n]))
}

const countScheduled = async () => {
  const { rows } = await fixture.app.database.pool.query(
    `select count(*)::int as n from webhook_dispatch where attempt_trigger = 'replay'`,
  )
  return rows[0].n
}

/** `db`, on which the second statement that answers a job fails after it ran, as when its process dies right there. */
function dieAfterProgress(db: Database): Database {
  let jobs = 0
  return db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result, queryId: _queryId }) => {
      if (Object.hasOwn((result.rows[0] ?? {}) as object, 'skippedReasons')) jobs += 1
      if (jobs === 2) throw Object.assign(new Error('Connection terminated'), { code: '57P01' })
      return result
    },
  })
}

test('a job keeps no more rows on their way than its limit, and goes on as they are posted', async () => {
  await addExhausted(REPLAYS_ON_THEIR_WAY_LIMIT + 30)
  const id = await makeJob()
  const worker = buildWorker()
  await worker.drain()
  expect(await job(id)).toMatchObject({ status: 'running', processed: REPLAYS_ON_THEIR_WAY_LIMIT })
  await worker.drain()
  expect(await countScheduled()).toBe(REPLAYS_ON_THEIR_WAY_LIMIT)
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'done', replayed: REPLAYS_ON_THEIR_WAY_LIMIT + 30, skipped: 0 })
  expect(await countAttempts()).toEqual({ 6: REPLAYS_ON_THEIR_WAY_LIMIT + 30 })
})

test('rows that rest with a webhook that went inactive do not hold the job back; the later ones are skipped', async () => {
  await addExhausted(REPLAYS_ON_THEIR_WAY_LIMIT + 5)
  const id = await makeJob()
  const worker = buildWorker()
  await worker.drain()
  await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: false })
  await worker.drain()
  expect(await job(id)).toMatchObject({ status: 'done', skipped: 5, skipped_reasons: { webhook_inactive: 5 } })
})

test('a worker that dies in the middle of a batch leaves no trace of it, and another goes on exactly there', async () => {
  await addExhausted(REPLAY_BATCH_SIZE + 20)
  const id = await makeJob()
  // The first statement claims the job. It dies when the rows of its first batch are scheduled and nothing is committed.
  const dying = buildWorker({ db: dieAfterProgress(fixture.app.database.db) })
  await expect(dying.drain()).rejects.toThrow('Connection terminated')
  expect(await countScheduled()).toBe(0)
  expect(await job(id)).toMatchObject({ status: 'running', processed: 0, replayed: 0 })
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'done', replayed: REPLAY_BATCH_SIZE + 20 })
  expect(await countAttempts()).toEqual({ 6: REPLAY_BATCH_SIZE + 20 })
  expect(fixture.received(webhook).length).toBe(REPLAY_BATCH_SIZE + 20)
})

test('a worker that dies between two batches has replayed the first, and another replays only the rest', async () => {
  await addExhausted(REPLAY_BATCH_SIZE + 20)
  const id = await makeJob()
  let batches = 0
  const dying = buildWorker({
    onQueued: () => {
      batches += 1
      throw Object.assign(new Error('Connection terminated'), { code: '57P01' })
    },
  })
  await expect(dying.drain()).rejects.toThrow('Connection terminated')
  expect(batches).toBe(1)
  expect(await job(id)).toMatchObject({ processed: REPLAY_BATCH_SIZE })
  await fixture.app.settle()
  expect(await countAttempts()).toEqual({ 6: REPLAY_BATCH_SIZE + 20 })
})

test('several workers on connections of their own share the jobs and replay no row twice', async () => {
  const count = REPLAYS_ON_THEIR_WAY_LIMIT
  await addExhausted(count)
  const jobs = [await makeJob(), await makeJob()]
  const pools = [1, 2, 3].map(() =>
    openDatabase({
      connectionString: fixture.app.database.connectionString,
      size: 2,
      applicationName: 'replay worker test',
      onError: () => {},
    }),
  )
  const workers = pools.map(({ db }, index) => buildWorker({ db, workerId: `worker ${index}` }))
  for (let round = 0; round < 10; round += 1) await Promise.all(workers.map((worker) => worker.drain()))
  await Promise.all(pools.map((pool) => pool.close()))
  const [first, second] = await Promise.all(jobs.map(job))
  expect(first).toMatchObject({ status: 'done', processed: count })
  expect(second).toMatchObject({ status: 'done', processed: count })
  // Both jobs hold every row; each row was put on its way by one of them.
  expect(first.replayed + second.replayed).toBe(count)
  await fixture.app.settle()
  expect(await countAttempts()).toEqual({ 6: count })
  expect(fixture.received(webhook).length).toBe(count)
})

test('a paused job puts nothing more on its way until it is resumed, and then goes on where it stood', async () => {
  await addExhausted(REPLAYS_ON_THEIR_WAY_LIMIT + 10)
  const id = await makeJob()
  const worker = buildWorker()
  await worker.drain()
  await move(id, 'pause')
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'paused', processed: REPLAYS_ON_THEIR_WAY_LIMIT, ended_at: null })
  expect(await countAttempts()).toEqual({ 5: 10, 6: REPLAYS_ON_THEIR_WAY_LIMIT })
  await move(id, 'resume')
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'done', replayed: REPLAYS_ON_THEIR_WAY_LIMIT + 10 })
})

test('a cancelled job ends for good; what was on its way goes out', async () => {
  await addExhausted(REPLAYS_ON_THEIR_WAY_LIMIT + 10)
  const id = await makeJob()
  await buildWorker().drain()
  await move(id, 'cancel')
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'cancelled', ended_at: expect.any(String) })
  expect(await countAttempts()).toEqual({ 5: 10, 6: REPLAYS_ON_THEIR_WAY_LIMIT })
})

test('a row that another transaction holds is skipped, not waited for', async () => {
  await addExhausted(3)
  const id = await makeJob()
  await using holder = await holdOneRow()
  await buildWorker().drain()
  await holder.release()
  expect(await job(id)).toMatchObject({ status: 'done', replayed: 2, skipped_reasons: { under_way: 1 } })
})

async function holdOneRow() {
  const client = await fixture.app.database.pool.connect()
  await client.query('begin')
  await client.query('select 1 from webhook_dispatch_ended limit 1 for update')
  let isHeld = true
  const release = async () => {
    if (!isHeld) return
    isHeld = false
    await client.query('rollback')
    client.release()
  }
  return { release, [Symbol.asyncDispose]: release }
}

test('a job whose rounds fail five times in a row ends as failed, says so, and can be resumed', async () => {
  await addExhausted(4)
  const id = await makeJob()
  await fixture.app.database.pool.query(
    `create function refuse_in_test() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
     create trigger refuse before delete on webhook_dispatch_ended for each row execute function refuse_in_test()`,
  )
  const worker = buildWorker()
  for (let round = 0; round < 4; round += 1) await worker.drain()
  expect(await job(id)).toMatchObject({ status: 'running', last_error: null })
  await worker.drain()
  const failed = await job(id)
  expect(failed).toMatchObject({
    status: 'failed',
    processed: 0,
    last_error: expect.stringContaining('5 consecutive rounds'),
  })
  await fixture.app.database.pool.query('drop trigger refuse on webhook_dispatch_ended')
  await move(id, 'resume')
  await fixture.app.settle()
  expect(await job(id)).toMatchObject({ status: 'done', replayed: 4, last_error: null, ended_at: expect.any(String) })
})

test('ended jobs go with the ledger they were about; a running one stays', async () => {
  await addExhausted(1)
  const ended = await makeJob()
  await fixture.app.settle()
  await addExhausted(1)
  const running = await makeJob()
  fixture.app.clock.advance(31 * 24 * 3_600_000)
  const report = await fixture.app.app.maintenance.sweep()
  expect(report.replayJobs).toBe(1)
  expect((await fixture.app.admin('GET', `${JOBS}/${ended}`)).status).toBe(404)
  expect((await job(running)).status).toBe('running')
})

test('a running worker takes up a job by itself and stops when it is told', async () => {
  await addExhausted(1)
  const id = await makeJob()
  const worker = buildWorker()
  const run = worker.run()
  await waitFor('the job is done', async () => (await job(id)).status === 'done')
  worker.stop()
  await run
  expect(await job(id)).toMatchObject({ status: 'done', replayed: 1 })
})
