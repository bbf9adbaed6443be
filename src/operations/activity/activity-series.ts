import type { ReadEach } from '../../http/route/cell-key.ts'
import { findStart, RANGES, type Range } from '../dashboard/series.ts'
import { type ActivityKind, readSums } from './activity-sum.store.ts'

/** How much of each measure. */
export type Sums = ReadonlyMap<string, number>

/** The sums of a range by bucket, every bucket of it, and over all: how much of each measure. */
export async function readSeries(
  readEach: ReadEach,
  { kind, range, now }: { kind: ActivityKind; range: Range; now: Date },
) {
  const { width, stepMs, count } = RANGES[range]
  const start = findStart(range, now)
  const sums = (await readEach(({ db }) => readSums(db, { kind, width, start }))).flat()
  const sumOf = (rows: typeof sums) => {
    const byMeasure = new Map<string, number>()
    for (const { measure, count } of rows) byMeasure.set(measure, (byMeasure.get(measure) ?? 0) + count)
    return byMeasure
  }
  const byBucket = Map.groupBy(sums, ({ at }) => at.getTime())
  const buckets = Array.from({ length: count }, (_, index) => {
    const atMs = start.getTime() + index * stepMs
    return { at: new Date(atMs).toISOString(), sums: sumOf(byBucket.get(atMs) ?? []) }
  })
  return { start, bucketSeconds: stepMs / 1_000, total: sumOf(sums), buckets }
}
