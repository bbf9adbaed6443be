import { expect, test } from 'vitest'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildJobRunner, type MovedJob } from './job-runner.ts'
import { countJobFailure } from './job-state.ts'

type Batch = MovedJob<{ status: string }> | Error | undefined

const MOVED = { job: { status: 'running' }, queued: 1 }
const DONE = { job: { status: 'done' }, queued: 0 }
/** Jobs in one read. */
const PAGE = 3

/** A runner whose jobs do what the test says, batch by batch; without a word a job waits. */
async function openRunner(options: { isTrusted?: boolean; latch?: () => Promise<unknown> } = {}) {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const sleeps: number[] = []
  const batches = new Map<string, Batch[]>()
  const seen = { rounds: 0, advanced: [] as string[], failed: [] as string[], queued: 0, lines: [] as string[] }
  let isLast = false
  let listFailure: Error | undefined
  const inTransaction = (tx: Database) => expect(tx.isTransaction).toBe(true)
  const runner = buildJobRunner<string, { status: string }>({
    db: database.db,
    clock: {
      now: clock.now,
      sleep: (ms, signal) => {
        sleeps.push(ms)
        return clock.sleep(ms, signal)
      },
    },
    isTrusted: () => options.isTrusted ?? true,
    latch: options.latch,
    logger: buildListeningLogger((line) => seen.lines.push(line)),
    name: 'test job',
    failedLine: 'test job round failed',
    listRunning: async (_db, after) => {
      if (after === null) seen.rounds += 1
      if (listFailure) throw listFailure
      const ids = [...batches.keys()].toSorted()
      return ids.filter((id) => after === null || id > after).slice(0, PAGE)
    },
    advance: async (tx, id) => {
      inTransaction(tx)
      seen.advanced.push(id)
      const batch = batches.get(id)?.shift()
      if (batch instanceof Error) throw batch
      if (isLast) runner.stop()
      if (batch?.job.status === 'done') batches.delete(id)
      return batch
    },
    fail: async (tx, id) => {
      inTransaction(tx)
      seen.failed.push(id)
      return { status: 'running' }
    },
    describe: () => ({}),
    onQueued: () => {
      seen.queued += 1
    },
  })
  return {
    ...{ clock, sleeps, batches, seen, runner },
    /** Stops the runner while it moves the next job. */
    stopAfterMove: () => {
      isLast = true
    },
    failList: (error?: Error) => {
      listFailure = error
    },
    [Symbol.asyncDispose]: async () => {
      runner.stop()
      await database[Symbol.asyncDispose]()
    },
  }
}

test('every job is moved on as far as it may: to its end, or until all wait', async () => {
  await using t = await openRunner()
  t.batches.set('a', [MOVED, MOVED, DONE]).set('b', [MOVED])
  expect(await t.runner.drain()).toBe(true)
  expect(t.seen.advanced.filter((id) => id === 'a')).toHaveLength(3)
  expect([...t.batches.keys()]).toEqual(['b'])
  expect(t.seen.queued).toBe(3)
  expect(t.seen.lines).toEqual(['test job done'])
  expect(await t.runner.drain()).toBe(false)
})

test('jobs that wait, more than one read finds, hold back none that came later', async () => {
  await using t = await openRunner()
  for (let waiting = 0; waiting < 2 * PAGE; waiting += 1) t.batches.set(`a${waiting}`, [])
  t.batches.set('b', [MOVED, DONE])
  expect(await t.runner.drain()).toBe(true)
  expect(t.batches.has('b')).toBe(false)
})

test('a batch that fails is counted in a transaction of its own, and does not stop the others', async () => {
  await using t = await openRunner()
  t.batches.set('a', [new Error('a bug')]).set('b', [DONE])
  await t.runner.drain()
  expect(t.seen.failed).toEqual(['a'])
  expect(t.seen.advanced).toContain('b')
  expect(t.seen.lines).toEqual(['test job round failed', 'test job done'])
})

test.each(['57P01', '55P03'])('what is no fault of a job (%s) is not counted: the round ends', async (code) => {
  await using t = await openRunner()
  t.batches.set('a', [Object.assign(new Error('not now'), { code })])
  await expect(t.runner.drain()).rejects.toThrow('not now')
  expect(t.seen.failed).toEqual([])
})

test('a job whose account moves waits, without a failure and a line of the log, and does not stop the others', async () => {
  await using t = await openRunner()
  const refused = Object.assign(new Error('elsewhere'), { code: 'SB001', detail: 'account' })
  t.batches.set('a', [refused]).set('b', [DONE])
  await t.runner.drain()
  expect([t.seen.failed, t.seen.lines]).toEqual([[], ['test job done']])
  t.batches.set('a', [refused])
  expect(await t.runner.drain()).toBe(false)
})

test('a runner looks for jobs behind its latch', async () => {
  const latch = Promise.withResolvers<void>()
  let isAsked = false
  await using t = await openRunner({
    latch: () => {
      isAsked = true
      return latch.promise
    },
  })
  const running = t.runner.run()
  await waitFor('the latch', () => isAsked)
  await new Promise(setImmediate)
  expect(t.seen.rounds).toBe(0)
  latch.resolve()
  await waitFor('a rest', () => t.sleeps.length === 1)
  expect(t.seen.rounds).toBe(1)
  t.runner.stop()
  await running
})

test('nothing is moved while the clock is not trusted', async () => {
  await using t = await openRunner({ isTrusted: false })
  t.batches.set('a', [MOVED])
  expect(await t.runner.drain()).toBe(false)
  expect([t.seen.rounds, t.seen.advanced]).toEqual([0, []])
})

test('a runner looks again at once after a move, in 250 ms while its jobs wait, and in a second while there are none', async () => {
  await using t = await openRunner()
  t.batches.set('a', [MOVED])
  const running = t.runner.run()
  await waitFor('a rest', () => t.sleeps.length === 1)
  expect([t.seen.advanced.length, t.sleeps]).toEqual([2, [250]])
  t.batches.clear()
  t.clock.advance(250)
  await waitFor('the next rest', () => t.sleeps.length === 2)
  expect(t.sleeps).toEqual([250, 1_000])
  t.clock.advance(1_000)
  await waitFor('the rest after it', () => t.sleeps.length === 3)
  expect([t.seen.rounds, t.sleeps]).toEqual([4, [250, 1_000, 1_000]])
  t.runner.stop()
  await running
})

test('a runner whose database is away says so, and looks again in a second', async () => {
  await using t = await openRunner()
  t.failList(new Error('connection terminated'))
  const running = t.runner.run()
  await waitFor('a rest', () => t.sleeps.length === 1)
  const line = 'test job worker round failed: see docs/operations.md, database'
  expect([t.seen.rounds, t.sleeps, t.seen.lines]).toEqual([1, [1_000], [line]])
  t.failList()
  t.clock.advance(1_000)
  await waitFor('the next round', () => t.sleeps.length === 2)
  expect([t.seen.rounds, t.seen.lines.length]).toEqual([2, 1])
  t.runner.stop()
  await running
})

test('a runner that is stopped moves no further job', async () => {
  await using t = await openRunner()
  t.batches.set('a', [MOVED, MOVED]).set('b', [MOVED])
  t.stopAfterMove()
  await t.runner.run()
  expect(t.seen.advanced).toEqual(['a'])
  expect(await t.runner.drain()).toBe(false)
})

test('a job ends as failed at its fifth failure in a row, and says how to go on', () => {
  expect(countJobFailure(0)).toEqual({ failures: 1 })
  expect(countJobFailure(3)).toEqual({ failures: 4 })
  expect(countJobFailure(4)).toMatchObject({
    failures: 5,
    status: 'failed',
    lastError: expect.stringContaining('Resume'),
  })
})
