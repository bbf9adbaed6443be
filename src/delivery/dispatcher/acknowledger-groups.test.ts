import { expect, test } from 'vitest'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { Claim } from '../policy.ts'
import { buildAcknowledger } from './acknowledger.ts'

const COLLECT_MS = 10
const SLOW_MS = 250
const RETRY_MS = 250
const LOCK_TIMEOUT = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })

/** A statement that was sent: the ids of its results, and how it ends. */
interface Sent {
  ids: string[]
  end(heldBack?: readonly string[]): void
  fail(error: Error): void
}

/** An acknowledger whose statements and rests end when the test says so. A result is named by its group and a number. */
function openAcknowledger() {
  const clock = buildManualClock()
  const rests: { ms: number; signal: AbortSignal | undefined; end: () => void }[] = []
  const sent: Sent[] = []
  const done: string[] = []
  const lines: string[] = []
  const rest = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      rests.push({ ms, signal, end: resolve })
      if (signal?.aborted) resolve()
      signal?.addEventListener('abort', () => resolve())
    })
  const settle = (ended: readonly Claim[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      sent.push({ ids: ended.map(({ id }) => id), end: (heldBack = []) => resolve(heldBack), fail: reject })
    })
  const policy = {
    queue: { settle },
    onSettled: () => {},
    listHeldBack: (heldBack: readonly string[]) => heldBack.map((id) => ({ id, fence: 1 })),
  }
  const logger = buildListeningLogger((line) => lines.push(line))
  const acknowledger = buildAcknowledger<Claim, readonly string[]>({ policy, clock, rest, logger }, (ended) =>
    done.push(...ended.map(({ id }) => id)),
  )
  return {
    ...{ acknowledger, clock, sent, done, lines, rests },
    ids: () => sent.map(({ ids }) => ids.join(' ')),
    add: async (...ids: string[]) => {
      for (const id of ids) acknowledger.add({ id, fence: 1 }, id[0]!)
      await mutex()
    },
    /** Ends the rests of this length, and lets everything run that follows. */
    pass: async (ms: number) => {
      for (const rest of rests.splice(0).filter((item) => item.ms !== ms || item.end())) rests.push(rest)
      await mutex()
    },
    /** Advances the clock by the wait before another try. */
    retry: async () => {
      clock.advance(RETRY_MS)
      await mutex()
    },
  }
}

async function mutex(): Promise<void> {
  for (let times = 0; times < 5; times += 1) await new Promise(setImmediate)
}

test('statements follow one another while each is prompt, and results are collected anew before each', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  expect(t.sent).toEqual([])
  await t.pass(COLLECT_MS)
  await t.add('b1')
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1'])
  t.sent[0]!.end()
  await mutex()
  expect(t.ids()).toEqual(['a1'])
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1'])
  t.sent[1]!.end()
  await mutex()
  expect([t.done, t.acknowledger.settled()]).toEqual([['a1', 'b1'], undefined])
})

test('who waited for the end once does not keep later results from being collected', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  const settled = t.acknowledger.settled()
  await mutex()
  t.sent[0]!.end()
  await settled
  await t.add('b1')
  expect(t.ids()).toEqual(['a1'])
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1'])
})

test('a slow statement holds back its own groups alone, and what came of them follows it', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  await t.pass(COLLECT_MS)
  await t.add('a2', 'b1')
  await t.pass(SLOW_MS)
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1'])
  t.sent[0]!.end()
  await t.add('b2')
  t.sent[1]!.end()
  await mutex()
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1', 'b2 a2'])
  t.sent[2]!.end()
  await mutex()
  expect(t.acknowledger.settled()).toBeUndefined()
})

test('a group that is recorded by a slow statement goes on while others of it wait for a lock', async () => {
  const t = openAcknowledger()
  await t.add('a1', 'b1')
  await t.pass(COLLECT_MS)
  await t.pass(SLOW_MS)
  await t.add('a2', 'b2')
  t.sent[0]!.end(['b1'])
  await mutex()
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1 b1', 'a2'])
})

test('two slow statements run beside another one at most', async () => {
  const t = openAcknowledger()
  for (const id of ['a1', 'b1', 'c1', 'd1']) {
    await t.add(id)
    await t.pass(COLLECT_MS)
    await t.pass(SLOW_MS)
    await t.pass(COLLECT_MS)
  }
  expect(t.ids()).toEqual(['a1', 'b1', 'c1'])
  t.sent[2]!.end()
  await mutex()
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1', 'c1', 'd1'])
})

test('a lock that a statement waits for in vain holds back its groups alone, until they are recorded in their order', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  await t.pass(COLLECT_MS)
  t.sent[0]!.fail(LOCK_TIMEOUT)
  await mutex()
  await t.add('a2', 'b1')
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'b1'])
  t.sent[1]!.end()
  await t.retry()
  expect(t.ids()).toEqual(['a1', 'b1', 'a1 a2'])
  t.sent[2]!.end(['a1'])
  await t.add('a3')
  await t.retry()
  expect(t.ids().at(-1)).toBe('a1 a3')
  expect(t.done).toEqual(['b1', 'a2'])
  t.sent[3]!.end()
  await mutex()
  await t.add('a4')
  await t.pass(COLLECT_MS)
  expect(t.ids().at(-1)).toBe('a4')
})

test('a result that a lock held back is tried again when the database fails at it later', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  await t.pass(COLLECT_MS)
  t.sent[0]!.fail(LOCK_TIMEOUT)
  await mutex()
  await t.retry()
  t.sent[1]!.fail(new Error('connection terminated'))
  await mutex()
  await t.retry()
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1', 'a1', 'a1'])
  t.sent[2]!.end()
  await mutex()
  expect([t.done, t.lines.length]).toEqual([['a1'], 1])
})

test('a slow statement that the database refuses is taken apart at once, as a prompt one is', async () => {
  const t = openAcknowledger()
  await t.add('a1', 'a2')
  await t.pass(COLLECT_MS)
  await t.pass(SLOW_MS)
  t.sent[0]!.fail(Object.assign(new Error('value too long'), { code: '22001' }))
  await mutex()
  expect(t.ids()).toEqual(['a1 a2', 'a1'])
})

test('a database that does not answer gets nothing more until the wait is over', async () => {
  const t = openAcknowledger()
  await t.add('a1', 'b1')
  await t.pass(COLLECT_MS)
  t.sent[0]!.fail(new Error('connection terminated'))
  await mutex()
  await t.add('c1')
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1 b1'])
  await t.retry()
  await t.pass(COLLECT_MS)
  expect(t.ids()).toEqual(['a1 b1', 'a1 b1 c1'])
})

test('what a lock holds back for twenty tries is logged with its group, again after twenty more', async () => {
  const t = openAcknowledger()
  await t.add('a1')
  await t.pass(COLLECT_MS)
  t.sent[0]!.end(['a1'])
  await mutex()
  const countAfter = async (tries: number) => {
    for (let at = 0; at < tries; at += 1) {
      await t.retry()
      t.sent.at(-1)!.end(['a1'])
      await mutex()
    }
    return t.lines.length
  }
  expect([await countAfter(19), await countAfter(1), await countAfter(19), await countAfter(1)]).toEqual([0, 1, 1, 2])
  expect(t.lines[0]).toContain('results wait for a lock')
})
