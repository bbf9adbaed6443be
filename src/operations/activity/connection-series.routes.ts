import { defineRoute, type Routes } from '../../http/route/route.ts'
import { namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { RangeQuery, RangeSchema } from '../dashboard/range.schema.ts'
import { readSeries, type Sums } from './activity-series.ts'
import { PEAK } from './activity-sum.store.ts'

const CONNECTIONS = {
  average: nullable(Type.Number({ description: 'Mean of the readings; null without one.' })),
  peak: nullable(Type.Integer({ description: 'The highest reading; null without one.' })),
}

const ConnectionSeries = namedObject('RealtimeConnectionSeries', {
  range: RangeSchema,
  bucket_seconds: Type.Integer(),
  ...CONNECTIONS,
  buckets: Type.Array(namedObject('RealtimeConnectionBucket', { at: TimestampSchema, ...CONNECTIONS })),
})

/** Summary of the readings of a span: the mean to one decimal, and the highest. Pure. */
function summarizeReadings(sums: Sums): { average: number | null; peak: number | null } {
  const minutes = sums.get('minutes') ?? 0
  if (minutes === 0) return { average: null, peak: null }
  return { average: Math.round(((sums.get('open') ?? 0) / minutes) * 10) / 10, peak: sums.get(PEAK) ?? 0 }
}

/** Realtime connections over time (docs/contract/delivery.md#activity). */
export const connectionSeriesRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/realtime/dashboard/connection',
      resource: 'realtime',
      action: 'dashboard-connections',
      accountScope: 'none',
      summary: 'Realtime connections over time',
      description:
        'Open connections of the embedded server, over all processes, read once a minute. Buckets without a reading have null: an external provider counts its own.',
      query: RangeQuery,
      data: ConnectionSeries,
    },
    async (_deps: object, { readEach, query, now }) => {
      const { range = '24h' } = query
      const { start, bucketSeconds, total, buckets } = await readSeries(readEach, { kind: 'connection', range, now })
      const shown = buckets.map(({ at, sums }) => ({ at, ...summarizeReadings(sums) }))
      const peaks = shown.flatMap(({ peak }) => peak ?? [])
      return {
        data: {
          range,
          bucket_seconds: bucketSeconds,
          average: summarizeReadings(total).average,
          peak: peaks.length > 0 ? Math.max(...peaks) : null,
          buckets: shown,
        },
        message: `Realtime connections since ${start.toISOString()}.`,
      }
    },
  ),
]
