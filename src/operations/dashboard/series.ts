import { DURATION_BOUNDS_MS } from '../../webhook/activity/outcome-keys.ts'

/** Ranges of the dashboard: `count` buckets of `stepMs`, from sums of this width. */
export const RANGES = {
  '1h': { width: 'minute', stepMs: 60_000, count: 60 },
  '24h': { width: 'hour', stepMs: 3_600_000, count: 24 },
  '7d': { width: 'quarter', stepMs: 6 * 3_600_000, count: 28 },
  '30d': { width: 'day', stepMs: 24 * 3_600_000, count: 30 },
} as const

export type Range = keyof typeof RANGES

/** A sum of one bucket: of a status, of `cause:<failure class>`, or of `duration:<place in the histogram>`. */
export interface Measured {
  at: Date
  measure: string
  count: number
}

/** Attempts of a bucket by result, with the durations of answered ones; null without any. */
interface Bucket {
  at: Date
  success: number
  retrying: number
  exhausted: number
  failed: number
  p50Ms: number | null
  p95Ms: number | null
}

/** The attempts of a range. */
export interface Series extends Omit<Bucket, 'at'> {
  buckets: Bucket[]
  /** Attempts that failed by failure class, the most frequent first. */
  causes: { cause: string; attempts: number }[]
}

/** Start of the first bucket of a range that ends with the bucket of `now`. Pure. */
export function findStart(range: Range, now: Date): Date {
  const { stepMs, count } = RANGES[range]
  return new Date((Math.floor(now.getTime() / stepMs) - count + 1) * stepMs)
}

/** Puts sums together, with every bucket of the range. Pure. */
export function buildSeries(range: Range, now: Date, measured: readonly Measured[]): Series {
  const { stepMs, count } = RANGES[range]
  const startMs = findStart(range, now).getTime()
  const byBucket = Map.groupBy(measured, ({ at }) => at.getTime())
  const buckets = Array.from({ length: count }, (_, index) => {
    const atMs = startMs + index * stepMs
    return { at: new Date(atMs), ...sumUp(byBucket.get(atMs) ?? []) }
  })
  const causes = [...sumByName(measured, 'cause:')].map(([cause, attempts]) => ({ cause, attempts }))
  causes.sort((a, b) => b.attempts - a.attempts || a.cause.localeCompare(b.cause))
  return { ...sumUp(measured), buckets, causes }
}

function sumUp(measured: readonly Measured[]): Omit<Bucket, 'at'> {
  const sums = sumByName(measured, '')
  const of = (name: string) => sums.get(name) ?? 0
  const places = DURATION_BOUNDS_MS.map((_, place) => of(`duration:${place}`))
  places.push(of(`duration:${DURATION_BOUNDS_MS.length}`))
  return {
    success: of('success'),
    retrying: of('retrying'),
    exhausted: of('exhausted'),
    failed: of('failed'),
    p50Ms: findPercentile(places, 0.5),
    p95Ms: findPercentile(places, 0.95),
  }
}

function sumByName(measured: readonly Measured[], prefix: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { measure, count } of measured) {
    if (!measure.startsWith(prefix)) continue
    const name = measure.slice(prefix.length)
    sums.set(name, (sums.get(name) ?? 0) + count)
  }
  return sums
}

/** Duration at which an attempt is given up, in milliseconds (docs/contract/delivery.md#fixed-constants). */
const TIMEOUT_MS = 15_000

/** Percentile `share` in milliseconds, from counts by bucket, interpolated within one. Null without attempts. */
export function findPercentile(places: readonly number[], share: number): number | null {
  const wanted = places.reduce((sum, count) => sum + count, 0) * share
  if (wanted === 0) return null
  let passed = 0
  for (const [place, count] of places.entries()) {
    if (count > 0 && passed + count >= wanted) {
      const low = place === 0 ? 0 : (DURATION_BOUNDS_MS[place - 1] ?? 0)
      const high = DURATION_BOUNDS_MS[place] ?? TIMEOUT_MS
      return Math.round(low + ((wanted - passed) / count) * (high - low))
    }
    passed += count
  }
  return null
}
