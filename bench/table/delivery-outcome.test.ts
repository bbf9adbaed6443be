import { expect, test } from 'vitest'
import { compareArrivals } from './delivery-outcome.ts'

const load = { startedAtMs: 1_000, acceptedAtMs: Float64Array.of(1_010, 0, 1_030, 1_040, 1_050) }
const arrivals = { firstAtMs: Float64Array.of(1_015, 1_016, 0, 1_500), repeats: 2 }

test('accepted events that did not arrive are lost, also those beyond the last arrival', () => {
  const outcome = compareArrivals(load, arrivals, () => true)
  expect(outcome).toMatchObject({ accepted: 4, delivered: 2, lost: 2, duplicates: 2 })
})

test('an event that was refused counts neither as delivered nor as lost', () => {
  expect(compareArrivals(load, arrivals, (n) => n === 1)).toMatchObject({ accepted: 0, delivered: 0, lost: 0 })
})

test('latency begins with the answer, the rate with the first request and ends with the last arrival', () => {
  const outcome = compareArrivals(load, arrivals, () => true)
  expect(outcome.latenciesMs).toEqual([5, 460])
  expect(outcome.perSecond).toBe(2 / 0.5)
})

test('only counted events make the figures', () => {
  const outcome = compareArrivals(load, arrivals, (n) => n === 0)
  expect(outcome).toMatchObject({ accepted: 1, delivered: 1, lost: 0, latenciesMs: [5] })
  expect(outcome.perSecond).toBeCloseTo(1 / 0.015, 6)
})
