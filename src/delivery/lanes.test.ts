import { describe, expect, it } from 'vitest'
import { buildLanes, type LaneTicket, SLOW_AFTER_MS } from './lanes.ts'

const A = 'group-a'
const B = 'group-b'

function enterMany(lanes: ReturnType<typeof buildLanes>, count: number, group: string, startedAtMs = 0) {
  const tickets: LaneTicket[] = Array.from({ length: count }, () => ({ group, startedAtMs }))
  for (const ticket of tickets) lanes.enter(ticket)
  return tickets
}

describe('lanes', () => {
  it('starts with all fast slots and a quarter of them for slow groups', () => {
    expect(buildLanes(100).measure(0)).toEqual({
      fastSlots: 100,
      slowSlots: 25,
      slowGroups: [],
      inFlight: 0,
      byGroup: new Map(),
    })
  })

  it('keeps one slow slot when a quarter is less than one', () => {
    expect(buildLanes(1).measure(0)).toMatchObject({ fastSlots: 1, slowSlots: 1 })
    expect(buildLanes(3).measure(0)).toMatchObject({ slowSlots: 1 })
    expect(buildLanes(8).measure(0)).toMatchObject({ slowSlots: 2 })
  })

  it('counts an attempt as fast at 2,000 ms and as slow at 2,001 ms', () => {
    expect(SLOW_AFTER_MS).toBe(2_000)
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastSlots: 3, slowSlots: 1, slowGroups: [] })
    expect(lanes.measure(2_001)).toMatchObject({ fastSlots: 4, slowSlots: 0, slowGroups: [A] })
  })

  it('judges by the same edge when an attempt ends before a measurement', () => {
    const lanes = buildLanes(4)
    const [prompt] = enterMany(lanes, 1, A)
    lanes.leave(prompt!, 2_000)
    expect(lanes.measure(2_000).slowGroups).toEqual([])
    const [late] = enterMany(lanes, 1, B)
    lanes.leave(late!, 2_001)
    expect(lanes.measure(2_001).slowGroups).toEqual([B])
  })

  it('takes a group back into the fast lane when an attempt of it ends promptly', () => {
    const lanes = buildLanes(4)
    const [late] = enterMany(lanes, 1, A)
    lanes.leave(late!, 5_000)
    const [prompt] = enterMany(lanes, 1, A, 5_000)
    expect(lanes.measure(5_000)).toMatchObject({ fastSlots: 4, slowSlots: 0 })
    lanes.leave(prompt!, 5_100)
    expect(lanes.measure(5_100)).toMatchObject({ fastSlots: 4, slowSlots: 1, slowGroups: [] })
  })

  it('keeps a group slow while another attempt of it still hangs', () => {
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    const [prompt] = enterMany(lanes, 1, A, 3_000)
    lanes.leave(prompt!, 3_100)
    expect(lanes.measure(3_100).slowGroups).toEqual([A])
  })

  it('gives all fast slots back to the others when one group hangs on every slot', () => {
    const lanes = buildLanes(100)
    enterMany(lanes, 100, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastSlots: 0 })
    expect(lanes.measure(2_001)).toMatchObject({ fastSlots: 100, slowSlots: 0 })
  })

  it('never has more than four times its concurrency in flight, however many hang', () => {
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

  it('counts on when the clock steps back', () => {
    const lanes = buildLanes(4)
    const [ticket] = enterMany(lanes, 1, A, 10_000)
    expect(lanes.measure(0)).toMatchObject({ fastSlots: 3, slowSlots: 1, inFlight: 1 })
    lanes.leave(ticket!, 0)
    expect(lanes.measure(0)).toEqual({ fastSlots: 4, slowSlots: 1, slowGroups: [], inFlight: 0, byGroup: new Map() })
  })

  it('counts attempts in flight by group, and forgets a group without one', () => {
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

  it('calls room scarce where all slots are taken, at the cap of a group, and in the slow lane', () => {
    const lanes = buildLanes(3)
    expect(lanes.isScarce(A, 2)).toBe(false)
    enterMany(lanes, 2, A)
    expect([lanes.isScarce(A, 3), lanes.isScarce(A, 2), lanes.isScarce(B, 2)]).toEqual([false, true, false])
    enterMany(lanes, 1, B)
    expect(lanes.isScarce(B, 2)).toBe(true)
    const other = buildLanes(3)
    const [late] = enterMany(other, 1, A)
    other.leave(late!, SLOW_AFTER_MS + 1)
    expect([other.isScarce(A, 2), other.isScarce(B, 2)]).toEqual([true, false])
  })
})
