import { describe, expect, it } from 'vitest'
import type { WebhookId } from '../id.ts'
import { buildLanes, type LaneTicket, SLOW_AFTER_MS } from './lanes.ts'

const A = 'webhook-a' as WebhookId
const B = 'webhook-b' as WebhookId

function enterMany(lanes: ReturnType<typeof buildLanes>, count: number, webhook: WebhookId, startedAtMs = 0) {
  const tickets: LaneTicket[] = Array.from({ length: count }, () => ({ webhook, startedAtMs }))
  for (const ticket of tickets) lanes.enter(ticket)
  return tickets
}

describe('lanes', () => {
  it('starts with all fast places and a quarter of them for slow webhooks', () => {
    expect(buildLanes(100).measure(0)).toEqual({ fastPlaces: 100, slowPlaces: 25, slowWebhooks: [], inFlight: 0 })
  })

  it('keeps one slow place when a quarter is less than one', () => {
    expect(buildLanes(1).measure(0)).toMatchObject({ fastPlaces: 1, slowPlaces: 1 })
    expect(buildLanes(3).measure(0)).toMatchObject({ slowPlaces: 1 })
    expect(buildLanes(8).measure(0)).toMatchObject({ slowPlaces: 2 })
  })

  it('counts an attempt as fast at 2,000 ms and as slow at 2,001 ms', () => {
    expect(SLOW_AFTER_MS).toBe(2_000)
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastPlaces: 3, slowPlaces: 1, slowWebhooks: [] })
    expect(lanes.measure(2_001)).toMatchObject({ fastPlaces: 4, slowPlaces: 0, slowWebhooks: [A] })
  })

  it('judges by the same edge when an attempt ends before anyone measured', () => {
    const lanes = buildLanes(4)
    const [prompt] = enterMany(lanes, 1, A)
    lanes.leave(prompt!, 2_000)
    expect(lanes.measure(2_000).slowWebhooks).toEqual([])
    const [late] = enterMany(lanes, 1, B)
    lanes.leave(late!, 2_001)
    expect(lanes.measure(2_001).slowWebhooks).toEqual([B])
  })

  it('takes a webhook back into the fast lane when an attempt of it ends promptly', () => {
    const lanes = buildLanes(4)
    const [late] = enterMany(lanes, 1, A)
    lanes.leave(late!, 5_000)
    const [prompt] = enterMany(lanes, 1, A, 5_000)
    expect(lanes.measure(5_000)).toMatchObject({ fastPlaces: 4, slowPlaces: 0 })
    lanes.leave(prompt!, 5_100)
    expect(lanes.measure(5_100)).toMatchObject({ fastPlaces: 4, slowPlaces: 1, slowWebhooks: [] })
  })

  it('keeps a webhook slow while another attempt of it still hangs', () => {
    const lanes = buildLanes(4)
    enterMany(lanes, 1, A)
    const [prompt] = enterMany(lanes, 1, A, 3_000)
    lanes.leave(prompt!, 3_100)
    expect(lanes.measure(3_100).slowWebhooks).toEqual([A])
  })

  it('gives all fast places back to the others when one webhook hangs on every place', () => {
    const lanes = buildLanes(100)
    enterMany(lanes, 100, A)
    expect(lanes.measure(2_000)).toMatchObject({ fastPlaces: 0 })
    expect(lanes.measure(2_001)).toMatchObject({ fastPlaces: 100, slowPlaces: 0 })
  })

  it('never has more than four times its concurrency in flight, however many hang', () => {
    for (const concurrency of [1, 2, 5, 16]) {
      const lanes = buildLanes(concurrency)
      let most = 0
      for (let round = 0; round < 20; round += 1) {
        const nowMs = round * 2_001
        const webhook = `webhook-${round}` as WebhookId
        const { fastPlaces, slowPlaces } = lanes.measure(nowMs)
        enterMany(lanes, fastPlaces, webhook, nowMs)
        enterMany(lanes, slowPlaces, A, nowMs)
        most = Math.max(most, lanes.measure(nowMs).inFlight)
        expect(most).toBeLessThanOrEqual(concurrency * 4)
      }
      expect(lanes.measure(1e6)).toMatchObject({ fastPlaces: 0, slowPlaces: 0 })
    }
  })

  it('is not upset by a clock that steps back', () => {
    const lanes = buildLanes(4)
    const [ticket] = enterMany(lanes, 1, A, 10_000)
    expect(lanes.measure(0)).toMatchObject({ fastPlaces: 3, slowPlaces: 1, inFlight: 1 })
    lanes.leave(ticket!, 0)
    expect(lanes.measure(0)).toEqual({ fastPlaces: 4, slowPlaces: 1, slowWebhooks: [], inFlight: 0 })
  })
})
