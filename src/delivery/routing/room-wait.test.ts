import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildRoomWait } from './room-wait.ts'

function openWait() {
  const clock = buildManualClock()
  const stopping = new AbortController()
  const rests: { ms: number; signal: AbortSignal | undefined }[] = []
  const rest: typeof clock.sleep = (ms, signal) => {
    rests.push({ ms, signal })
    return clock.sleep(ms, signal)
  }
  const room = buildRoomWait(rest, stopping.signal)
  const state = { hasRoom: false, isOver: false, asked: 0 }
  const wait = () =>
    room
      .wait(() => {
        state.asked += 1
        return state.hasRoom
      })
      .then(() => {
        state.isOver = true
      })
  return { clock, stopping, rests, room, state, wait }
}

/** Lets everything run that waits for no timer. */
const settle = () => new Promise(setImmediate)

test('with room there is no wait', async () => {
  const t = openWait()
  t.state.hasRoom = true
  await t.wait()
  expect(t.rests).toEqual([])
})

test('the wait ends with the first notification that brings room, and so does its timer', async () => {
  const t = openWait()
  const waiting = t.wait()
  for (let times = 0; times < 2; times += 1) {
    t.room.notify()
    await settle()
    expect(t.state.isOver).toBe(false)
  }
  // Once before the wait, at its begin, and after each of the two: it asks for nothing else.
  expect(t.state.asked).toBe(4)
  t.state.hasRoom = true
  t.room.notify()
  await waiting
  expect(t.rests.map(({ ms, signal }) => [ms, signal?.aborted])).toEqual([[50, true]])
})

test('a notification before the wait does not end it', async () => {
  const t = openWait()
  t.room.notify()
  void t.wait()
  await settle()
  expect([t.state.isOver, t.state.asked]).toEqual([false, 2])
})

test('without room the wait ends after 50 ms', async () => {
  const t = openWait()
  const waiting = t.wait()
  t.clock.advance(49)
  await settle()
  expect(t.state.isOver).toBe(false)
  t.clock.advance(1)
  await waiting
})

test('a process that stops waits for no room', async () => {
  const t = openWait()
  const waiting = t.wait()
  t.stopping.abort()
  t.room.notify()
  await waiting
  expect(t.state.hasRoom).toBe(false)
})
