import { describe, expect, test } from 'vitest'
import { buildSeries, findPercentile, findStart, RANGES, type Range } from './series.ts'

const NOW = new Date(Date.UTC(2026, 8, 11, 12, 20, 30))

describe('the buckets of a range', () => {
  test.each([
    ['1h', '2026-09-11T11:21:00.000Z', '2026-09-11T12:20:00.000Z'],
    ['24h', '2026-09-10T13:00:00.000Z', '2026-09-11T12:00:00.000Z'],
    ['7d', '2026-09-04T18:00:00.000Z', '2026-09-11T12:00:00.000Z'],
    ['30d', '2026-08-13T00:00:00.000Z', '2026-09-11T00:00:00.000Z'],
  ] as const)('of %s run from %s to %s, all of them', (range, first, last) => {
    const { buckets } = buildSeries(range, NOW, [])
    expect(buckets).toHaveLength(RANGES[range].count)
    expect(buckets.at(0)?.at.toISOString()).toBe(first)
    expect(buckets.at(-1)?.at.toISOString()).toBe(last)
    expect(findStart(range as Range, NOW).toISOString()).toBe(first)
  })

  test('hold the sums of their time, and the whole range all of them', () => {
    const at = (hour: number) => new Date(Date.UTC(2026, 8, 11, hour))
    const series = buildSeries('24h', NOW, [
      { at: at(12), measure: 'success', count: 3 },
      { at: at(12), measure: 'retrying', count: 1 },
      { at: at(12), measure: 'cause:dns', count: 1 },
      { at: at(12), measure: 'duration:2', count: 3 },
      { at: at(11), measure: 'exhausted', count: 2 },
      { at: at(11), measure: 'failed', count: 1 },
      { at: at(11), measure: 'cause:timeout', count: 2 },
      { at: at(11), measure: 'cause:redirect', count: 1 },
    ])
    const none = { success: 0, retrying: 0, exhausted: 0, failed: 0, p50Ms: null, p95Ms: null }
    expect(series.buckets.at(-1)).toEqual({ at: at(12), ...none, success: 3, retrying: 1, p50Ms: 38, p95Ms: 49 })
    expect(series.buckets.at(-2)).toEqual({ at: at(11), ...none, exhausted: 2, failed: 1 })
    expect(series).toMatchObject({ success: 3, retrying: 1, exhausted: 2, failed: 1, p50Ms: 38 })
    expect(series.causes).toEqual([
      { cause: 'timeout', attempts: 2 },
      { cause: 'dns', attempts: 1 },
      { cause: 'redirect', attempts: 1 },
    ])
  })
})

describe('a percentile of durations', () => {
  test.each([
    ['of nothing is null', [0, 0], 0.5, null],
    ['of the first place begins at 0', [10], 0.5, 5],
    ['lies within its place', [0, 10], 0.5, 18],
    ['passes over empty places', [1, 0, 0, 9], 0.95, 97],
    ['is at the end of a place that holds just as many', [5, 5], 0.5, 10],
    ['of the open place ends at the timeout', [...Array.from({ length: 10 }, () => 0), 1], 1, 15_000],
  ] as const)('%s', (_name, places, share, wanted) => {
    expect(findPercentile(places, share)).toBe(wanted)
  })
})
