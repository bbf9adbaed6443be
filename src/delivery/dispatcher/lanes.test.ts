import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildLanes, LATE_AFTER_MS, type LaneTicket, LOOK_MS, SLOW_AFTER_MS } from './lanes.ts'

const A = 'group-a'
const B = 'group-b'

function enterMany(lanes: ReturnType<typeof buildLanes>, count: number, group: string, startedAtMs = 0) {
  const tickets: LaneTicket[] = Array.from({ length: count }, () => ({ group, startedAtMs }))
  for (const ticket of tickets) lanes.enter(ticket)
  return tickets
}

describe('lanes', () => {
  test('starts with all fast slots and a quarter of them for slow groups', () => {
    expect(buildLanes(100).measure(0)).toEqual({
      fastSlots: 100,
      slowSlots: 25,
      slowGroups: [],
      lateGroups: [],
      inFlight: 0,
      byGroup: new Map(),
    })
  })

  test('keeps one slow slot when a quarter is less than one', () => {
    expect(buildLanes(1).measure(0)).toMatchObject({ fastSlots: 1, slowSlots: 1 })
    expect(buildLanes(3).measure(0)).toMatchObject({ slowSlots: 1 })
    expect(buildLanes(8).measure(0)).toMatchObject({ slowSlots: 2 })
  })

  test('counts an attempt as fast at 2,000 ms and as slow at 2,001 ms', () => {
    expect(SLOW_AFTER_MS).toBe(2_000)
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastSlots: 3, slowSlots: 1, slowGroups: [], lateGroups: [] })
    expect(lanes.measure(2_001)).toMatchObject({ fastSlots: 4, slowSlots: 0, slowGroups: [A] })
  })

  test('judges by the same edge when an attempt ends before a measurement', () => {
    const lanes = buildLanes(4)
    const [prompt] = enterMany(lanes, 1, A)
    lanes.leave(prompt!, 2_000)
    expect(lanes.measure(2_000).slowGroups).toEqual([])
    const [late] = enterMany(lanes, 1, B)
    lanes.leave(late!, 2_001)
    expect(lanes.measure(2_001).slowGroups).toEqual([B])
  })

  test('takes a group back into the fast lane when an attempt of it ends promptly', () => {
    const lanes = buildLanes(4)
    const [late] = enterMany(lanes, 1, A)
    lanes.leave(late!, 5_000)
    const [prompt] = enterMany(lanes, 1, A, 5_000)
    expect(lanes.measure(5_000)).toMatchObject({ fastSlots: 4, slowSlots: 0 })
    lanes.leave(prompt!, 5_100)
    expect(lanes.measure(5_100)).toMatchObject({ fastSlots: 4, slowSlots: 1, slowGroups: [], lateGroups: [] })
  })

  test('keeps a group slow while another attempt of it still hangs', () => {
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    const [prompt] = enterMany(lanes, 1, A, 3_000)
    lanes.leave(prompt!, 3_100)
    expect(lanes.measure(3_100).slowGroups).toEqual([A])
  })

  test('gives all fast slots back to the others when one group hangs on every slot', () => {
    const lanes = buildLanes(100)
    enterMany(lanes, 100, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastSlots: 0 })
    expect(lanes.measure(2_001)).toMatchObject({ fastSlots: 100, slowSlots: 0 })
  })

  test('never has more than four times its concurrency in flight, however many hang', () => {
    for (const concurrency of [1, 2, 5, 16]) {
      const lanes = buildLanes(concurrency)
      let most = 0
      for (let round = 0; round < 20; round += 1) {
        const nowMs = round * 2_001
        const group = `group-${round}`
        const { fastSlots, slowSlots } = lanes.measure(nowMs)
        enterMany(lanes, fastSlots, group, nowMs)
        enterMany(lanes, slowSlots, A, nowMs)
        most = Math.max(most, lanes.measure(nowMs).inFlight)
        expect(most).toBeLessThanOrEqual(concurrency * 4)
      }
      expect(lanes.measure(1e6)).toMatchObject({ fastSlots: 0, slowSlots: 0 })
    }
  })

  test('counts on when the clock steps back', () => {
    const lanes = buildLanes(4)
    const [ticket] = enterMany(lanes, 1, A, 10_000)
    expect(lanes.measure(0)).toMatchObject({ fastSlots: 3, slowSlots: 1, inFlight: 1 })
    lanes.leave(ticket!, 0)
    expect(lanes.measure(0)).toEqual({
      fastSlots: 4,
      slowSlots: 1,
      slowGroups: [],
      lateGroups: [],
      inFlight: 0,
      byGroup: new Map(),
    })
  })

  test('counts attempts in flight by group, and forgets a group without one', () => {
    const lanes = buildLanes(4)
    const [first] = enterMany(lanes, 2, A)
    const [other] = enterMany(lanes, 1, B)
    expect(lanes.measure(0).byGroup).toEqual(
      new Map([
        [A, 2],
        [B, 1],
      ]),
    )
    lanes.leave(first!, 1)
    lanes.leave(other!, 1)
    expect(lanes.measure(1).byGroup).toEqual(new Map([[A, 1]]))
  })

  test('calls room scarce at the cap of a group and in the slow lane', () => {
    const lanes = buildLanes(10)
    expect(lanes.isScarce(A, 2)).toBe(false)
    enterMany(lanes, 2, A)
    expect([lanes.isScarce(A, 3), lanes.isScarce(A, 2), lanes.isScarce(B, 2)]).toEqual([false, true, false])
    const [late] = enterMany(lanes, 1, B)
    lanes.leave(late!, SLOW_AFTER_MS + 1)
    expect(lanes.isScarce(B, 2)).toBe(true)
  })
})

/** Looks as a dispatcher does that waits for room; returns what the last look saw. */
function lookUntil(lanes: ReturnType<typeof buildLanes>, untilMs: number, fromMs = 0) {
  for (let nowMs = fromMs; nowMs < untilMs; nowMs += LOOK_MS) lanes.measure(nowMs)
  return lanes.measure(untilMs)
}

describe('late groups', () => {
  test('leave all slots to the others after 250 ms without an answer, and get none themselves', () => {
    expect(LATE_AFTER_MS).toBe(250)
    const lanes = buildLanes(8)
    enterMany(lanes, 4, A)
    enterMany(lanes, 4, B)
    expect(lookUntil(lanes, 250)).toMatchObject({ fastSlots: 0, lateGroups: [] })
    expect(lanes.measure(251)).toMatchObject({ fastSlots: 8, slowSlots: 2, lateGroups: [A, B], slowGroups: [] })
    expect(lookUntil(lanes, 2_001, 300)).toMatchObject({
      fastSlots: 8,
      slowSlots: 0,
      lateGroups: [],
      slowGroups: [A, B],
    })
  })

  test('are none while a quarter of the slots is free: whoever answers slowly is served as before', () => {
    const lanes = buildLanes(8)
    enterMany(lanes, 6, A)
    expect(lookUntil(lanes, 2_000)).toMatchObject({ fastSlots: 2, lateGroups: [] })
  })

  test('are those with an attempt in flight: a group whose attempts have ended is none', () => {
    const lanes = buildLanes(8)
    const [ended] = enterMany(lanes, 1, A)
    lanes.leave(ended!, 10)
    enterMany(lanes, 8, B)
    expect(lookUntil(lanes, 400)).toMatchObject({ lateGroups: [B] })
  })

  test('are judged each by its own answers', () => {
    const lanes = buildLanes(8)
    const [answered] = enterMany(lanes, 2, A)
    enterMany(lanes, 6, B)
    lookUntil(lanes, 200)
    lanes.leave(answered!, 200)
    expect(lookUntil(lanes, 300, 250)).toMatchObject({ fastSlots: 7, lateGroups: [B] })
    expect(lookUntil(lanes, 500, 350)).toMatchObject({ fastSlots: 8, lateGroups: [A, B] })
  })

  test('are late by their answers, whenever more is sent to them', () => {
    const lanes = buildLanes(8)
    enterMany(lanes, 6, A)
    lookUntil(lanes, 200)
    enterMany(lanes, 2, A, 200)
    expect(lookUntil(lanes, 251, 250)).toMatchObject({ fastSlots: 8, lateGroups: [A] })
  })

  test('get slots again with their next answer, which is worth a look', () => {
    const lanes = buildLanes(8)
    const [first] = enterMany(lanes, 8, A)
    expect(lanes.isScarce(A, 100)).toBe(false)
    expect(lookUntil(lanes, 300)).toMatchObject({ lateGroups: [A] })
    expect(lanes.isScarce(A, 100)).toBe(true)
    lanes.leave(first!, 300)
    expect(lanes.measure(300)).toMatchObject({ fastSlots: 1, lateGroups: [], slowGroups: [] })
    expect(lanes.isScarce(A, 100)).toBe(false)
  })

  test('are not made by a process that stood still: it has not read yet what was answered meanwhile', () => {
    const lanes = buildLanes(8)
    enterMany(lanes, 8, A)
    lookUntil(lanes, 100)
    expect(lanes.measure(1_500)).toMatchObject({ fastSlots: 0, lateGroups: [] })
    expect(lanes.measure(1_500)).toMatchObject({ fastSlots: 0, lateGroups: [] })
    expect(lookUntil(lanes, 1_650, 1_550)).toMatchObject({ fastSlots: 8, lateGroups: [A] })
  })

  test('are not made by a clock that was set', () => {
    const lanes = buildLanes(8)
    enterMany(lanes, 8, A, 10_000)
    expect(lookUntil(lanes, 200)).toMatchObject({ fastSlots: 0, lateGroups: [] })
    expect(lookUntil(lanes, 10_300, 10_250)).toMatchObject({ fastSlots: 8, lateGroups: [A] })
  })

  test('leave a slot within 250 ms to a group that answers, and a second wave of them within 2 s, whoever hangs', () => {
    const step = fc.record({ group: fc.nat(5), wanted: fc.integer({ min: 1, max: 12 }), passMs: fc.nat(400) })
    const holds = (concurrency: number, steps: { group: number; wanted: number; passMs: number }[]) => {
      const lanes = buildLanes(concurrency)
      let nowMs = 0
      const pass = (ms: number) => {
        nowMs += ms
        return lookUntil(lanes, nowMs, nowMs - ms)
      }
      for (const { group, wanted, passMs } of steps) {
        // Slots that a claim takes for this group; none of its attempts ever ends.
        const { fastSlots, slowSlots, slowGroups, lateGroups, inFlight: before } = lanes.measure(nowMs)
        const isOf = (groups: string[]) => groups.includes(`${group}`)
        const slots = isOf(slowGroups) ? slowSlots : isOf(lateGroups) ? 0 : fastSlots
        const taken = Math.min(slots, wanted)
        enterMany(lanes, taken, `${group}`, nowMs)
        const inFlight = before + taken
        expect(inFlight).toBeLessThanOrEqual(4 * concurrency)
        if (inFlight <= concurrency) expect(pass(LATE_AFTER_MS + 1).fastSlots).toBeGreaterThan(0)
        else if (inFlight < 4 * concurrency) expect(pass(SLOW_AFTER_MS + 1).fastSlots).toBeGreaterThan(0)
        pass(passMs)
      }
    }
    fc.assert(fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 30 }), holds))
  })
})
