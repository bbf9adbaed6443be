import { expect, test } from 'vitest'
import { buildRelayUnderTest } from '../../../test/harness/carriage/relay-under-test.ts'
import { type EventLog, LogError } from '../log/log.ts'
import type { Relay } from './relay.ts'

const UNREACHABLE = new LogError('unreachable', 'No answer.')

/** A relay to a log whose appends fail as `faults` say, or do `onAppend` first; it counts its ends. */
async function openRelay() {
  const under = await buildRelayUnderTest()
  const state = { faults: [] as Error[], isConnected: true, closed: 0, onAppend: async () => {} }
  const log: EventLog = {
    ...under.log,
    append: async (messages, after) => {
      const fault = state.faults.shift()
      if (fault) throw fault
      await state.onAppend()
      return under.log.append(messages, after)
    },
    isConnected: () => state.isConnected,
    close: async () => {
      state.closed += 1
    },
  }
  return { under, state, log, [Symbol.asyncDispose]: () => under[Symbol.asyncDispose]() }
}

test('a log that refuses, or answers without a leader, is connected to anew; each failure is counted and told of once', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  const relay = under.build('relay-1', log)
  for (const [fault, isConnected, closed] of [
    [new LogError('refused', 'The server refuses the user.'), false, 1],
    [UNREACHABLE, true, 2],
    [UNREACHABLE, false, 2],
    [Object.assign(new Error('another error'), { code: 'conflict' }), true, 2],
  ] as const) {
    Object.assign(state, { faults: [fault, fault], isConnected })
    await under.record()
    const failed = under.told.failed
    expect(await under.settle(relay)).toBe(1_000)
    expect([under.told.failed - failed, (await under.facts()).relay]).toEqual([1, null])
    state.faults = []
    expect(await under.settle(relay)).toBe(200)
    expect([state.closed, under.told.opened]).toEqual([closed, closed + 1])
  }
  const lines = ['event log not written', 'event log is written again']
  const all = [...lines, ...lines, ...lines, ...lines].map((line) => expect.stringContaining(line))
  expect(under.told.lines).toEqual(all)
  // Another writer: the next round decides.
  state.faults = [new LogError('conflict', 'The log ends elsewhere.')]
  await under.record()
  expect(await under.settle(relay)).toBe(200)
  expect(under.told).toMatchObject({ failed: 4, opened: 3, lines: all })
  expect(await under.facts()).toMatchObject({ waiting: 0, sequence: 5 })
})

test('a conflict that lasts makes rounds with pauses that double, and is a failure after a second', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  const conflict = new LogError('conflict', 'The log ends elsewhere.')
  state.faults = Array.from({ length: 11 }, () => conflict)
  await under.record()
  const pauses: number[] = []
  const relay: Relay = under.build('relay-1', log, {
    rest: async (ms) => {
      pauses.push(ms)
      if (ms === 200) relay.stop()
    },
  })
  await relay.run()
  // The first conflict in a row is looked at once more without a pause.
  expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 200, 2_000])
  const lines = ['event log not written', 'event log is written again'].map((line) => expect.stringContaining(line))
  expect([under.told.failed, under.told.lines]).toEqual([3, lines])
  expect(await under.facts()).toMatchObject({ waiting: 0, sequence: 1 })
  // An append between two conflicts ends the first.
  const next = under.build('relay-2', log)
  for (let times = 0; times < 20; times += 1) {
    state.faults = [conflict]
    await under.record()
    expect(await under.settle(next)).toBe(200)
  }
  expect(under.told.failed).toBe(3)
})

test('an event that is recorded does not end the pause after a failure', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  state.faults = [UNREACHABLE, UNREACHABLE]
  await under.record()
  const pauses: [number, boolean][] = []
  const relay: Relay = under.build('relay-1', log, {
    rest: async (ms, isOver) => {
      relay.notify()
      pauses.push([ms, isOver?.aborted === true])
      if (ms === 200) relay.stop()
    },
  })
  await relay.run()
  expect(pauses.slice(0, 3)).toEqual([
    [1_000, false],
    [1_000, false],
    [200, true],
  ])
})

test('a process whose lease another one took is not told of as one that writes again', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  const relay = under.build('relay-1', log)
  state.faults = [UNREACHABLE]
  await under.record()
  await under.settle(relay)
  await under.settle(under.build('relay-2'))
  expect(await under.settle(relay)).toBe(1_000)
  expect(under.told.lines).toHaveLength(1)
})

test('a stop confirms what was appended, gives the lease back and ends the connection', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  const rests: [ms: number, signal: AbortSignal | undefined][] = []
  const relay = under.build('relay-1', log, {
    rest: (ms, signal) => {
      rests.push([ms, signal])
      return Promise.withResolvers<void>().promise
    },
  })
  await under.record(2)
  state.onAppend = async () => relay.stop()
  await relay.run()
  expect(rests.map(([ms, signal]) => [ms, signal?.aborted])).toEqual([[2_000, true]])
  expect(await under.facts()).toMatchObject({ waiting: 0, sequence: 2, relay: null })
  expect(state.closed).toBe(1)
  expect(relay.isConnected()).toBeUndefined()
})

test('a pause ends with an event or a stop', async () => {
  await using open = await openRelay()
  const { under, log } = open
  const pauses: boolean[] = []
  const relay = under.build('relay-1', log, {
    rest: async (ms, signal) => {
      if (ms !== 200) return
      const isOver = () => signal?.aborted === true
      const wasOver = isOver()
      if (pauses.length < 3) relay.notify()
      else relay.stop()
      pauses.push(!wasOver && isOver())
    },
  })
  await relay.run()
  expect(pauses).toEqual([true, true, true, true])
  expect(relay.isConnected()).toBeUndefined()
})

test('a stop waits two seconds for an answer of the log, and then ends its connection', async () => {
  await using open = await openRelay()
  const { under, state, log } = open
  const answer = Promise.withResolvers<void>()
  const limit = Promise.withResolvers<void>()
  const appending = Promise.withResolvers<void>()
  const hanging: EventLog = { ...log, close: async () => answer.reject(UNREACHABLE) }
  const relay = under.build('relay-1', hanging, { rest: (ms) => (ms === 2_000 ? limit.promise : Promise.resolve()) })
  state.onAppend = () => {
    appending.resolve()
    return answer.promise
  }
  const ids = await under.record()
  const running = relay.run()
  await appending.promise
  expect(relay.isConnected()).toBe(true)
  relay.stop()
  limit.resolve()
  await running
  expect(await under.facts()).toMatchObject({ waiting: ids.length, relay: null })
})
