import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildLanes, LOOK_MS, SLOW_AFTER_MS } from './lanes.ts'
import { buildWaiting } from './waiting.ts'

const ROOM = { slowSlots: 1, slowGroups: [], lateGroups: [], inFlight: new Map(), perGroup: 9, hasPeers: false }

/** A wait in which the look at the queue takes 5 ms, by when the next row is due. Returns whether it ended at once. */
async function waitUntil(dueInMs: number): Promise<boolean> {
  const clock = buildManualClock()
  const dueAt = new Date(clock.now() + dueInMs)
  const nextDueAt = async () => {
    clock.advance(5)
    return dueAt
  }
  const waiting = buildWaiting({ clock, lanes: buildLanes(9), nextDueAt })
  waiting.beginRound()
  let isOver = false
  const wait = waiting.wait({ ...ROOM, fastSlots: 9, workerId: 'worker-a', now: new Date(clock.now()) }).then(() => {
    isOver = true
  })
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
  const wasOver = isOver
  waiting.notify()
  await wait
  return wasOver
}

test('a row that came due since the round began is claimed at once', async () => {
  expect(await waitUntil(1)).toBe(true)
  expect(await waitUntil(5)).toBe(true)
})

test('one that was due then has no slot, and one that is due later is waited for', async () => {
  expect(await waitUntil(0)).toBe(false)
  expect(await waitUntil(6)).toBe(false)
})

test('while no slot is free, room is looked for at short intervals, up to the end of the wait or a notification', async () => {
  const look = async (isNotified: boolean) => {
    const machine = buildManualClock()
    const slept: number[] = []
    const clock = {
      ...machine,
      sleep: async (ms: number) => {
        slept.push(ms)
        machine.advance(ms)
      },
    }
    const lanes = buildLanes(1)
    lanes.enter({ group: 'one', startedAtMs: clock.now() })
    const waiting = buildWaiting({ clock, lanes, nextDueAt: async () => new Date(clock.now() + 2.5 * LOOK_MS) })
    waiting.beginRound()
    if (isNotified) waiting.notify()
    await waiting.wait({ ...ROOM, fastSlots: 0, workerId: 'worker-a', now: new Date(clock.now()) })
    return slept
  }
  const slept = await look(false)
  expect(slept.length).toBeGreaterThan(1)
  expect(Math.max(...slept)).toBeLessThanOrEqual(LOOK_MS)
  expect(await look(true)).toHaveLength(1)
})

test.each([
  ['due already', 0, true],
  ['due later', LOOK_MS * 3, false],
])(
  'the end of an attempt that held the last prompt slot ends a wait for a row that is %s (in %i ms): %s',
  async (_name, dueInMs, isEnd) => {
    const clock = buildManualClock()
    const lanes = buildLanes(1)
    const slow = { group: 'slow', startedAtMs: clock.now() }
    lanes.enter(slow)
    clock.advance(SLOW_AFTER_MS + 1)
    lanes.leave(slow, clock.now())
    const ticket = { group: 'one', startedAtMs: clock.now() }
    lanes.enter(ticket)
    const waiting = buildWaiting({ clock, lanes, nextDueAt: async () => new Date(clock.now() + dueInMs) })
    expect(waiting.beginRound()).toBe(true)
    let isOver = false
    const wait = waiting.wait({ ...ROOM, fastSlots: 0, workerId: 'worker-a', now: new Date(clock.now()) }).then(() => {
      isOver = true
    })
    const turns = async () => {
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
      return isOver
    }
    await turns()
    waiting.noteEnd(false)
    expect(await turns()).toBe(false)
    lanes.leave(ticket, clock.now())
    waiting.noteEnd(false)
    expect(await turns()).toBe(isEnd)
    waiting.notify()
    await wait
  },
)
