import { defineRoute, type Routes } from '../../http/route/route.ts'
import { named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { readActivity, readMeasured, type WebhookActivity } from './activity.store.ts'
import { orderActivities } from './add-up.ts'
import { OF_DASHBOARD, RangeQuery, RangeSchema } from './range.schema.ts'
import { buildSeries, findStart, RANGES } from './series.ts'

/** Maximum number of webhooks in one request: a full page of a list. */
const WEBHOOKS_LIMIT = 200

const Count = Type.Integer()

const ATTEMPTS = {
  success: Count,
  retrying: Type.Integer({ description: 'Attempts that failed and are repeated.' }),
  exhausted: Count,
  failed: Count,
  p50_ms: nullable(Type.Integer({ description: 'Median duration of the attempts that got an answer.' })),
  p95_ms: nullable(Type.Integer({ description: 'Their 95th percentile.' })),
}

const SeriesSchema = namedObject('DeliverySeries', {
  range: RangeSchema,
  bucket_seconds: Count,
  ...ATTEMPTS,
  buckets: Type.Array(namedObject('DeliveryBucket', { at: TimestampSchema, ...ATTEMPTS })),
  causes: Type.Array(
    namedObject('FailureCause', {
      cause: Type.String({ description: 'A failure class of the attempt log.' }),
      attempts: Count,
    }),
  ),
})

const HourSchema = namedObject('WebhookHour', { hour: TimestampSchema, success: Count, retrying: Count, failed: Count })

const ActivitySchema = namedObject('WebhookActivity', {
  webhook: UuidSchema,
  last_attempt_at: nullable(TimestampSchema),
  success: Count,
  retrying: Count,
  failed: Count,
  hours: Type.Array(HourSchema, { description: 'The hours with attempts, oldest first.' }),
  event_types: Type.Integer({ description: 'Event types that it subscribes to.' }),
})

function toActivityRow({ webhook, lastAttemptAt, hours, eventTypes }: WebhookActivity): Static<typeof ActivitySchema> {
  const sum = (name: 'success' | 'retrying' | 'failed') => hours.reduce((all, item) => all + item[name], 0)
  return {
    webhook,
    last_attempt_at: lastAttemptAt?.toISOString() ?? null,
    success: sum('success'),
    retrying: sum('retrying'),
    failed: sum('failed'),
    hours: hours.map(({ hour, ...counts }) => ({ hour: hour.toISOString(), ...counts })),
    event_types: eventTypes,
  }
}

type AttemptCounts = Pick<
  ReturnType<typeof buildSeries>,
  'success' | 'retrying' | 'exhausted' | 'failed' | 'p50Ms' | 'p95Ms'
>

const toAttempts = ({ success, retrying, exhausted, failed, p50Ms, p95Ms }: AttemptCounts) => ({
  ...{ success, retrying, exhausted, failed },
  p50_ms: p50Ms,
  p95_ms: p95Ms,
})

export const activityRoutes: Routes<object> = [
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/series',
      action: 'dashboard-series',
      ownAccounts: true,
      summary: 'Attempts over time, their durations and their failures',
      description:
        'Attempts by when they ended and what they came to, in buckets of a minute (`1h`), an hour (`24h`), 6 hours (`7d`) ' +
        'or a day (`30d`), in UTC; the last bucket is that of now. They are counted within some seconds. A caller who holds ' +
        'the permission for some accounts gets the attempts of the webhooks of these.',
      query: RangeQuery,
      data: SeriesSchema,
    },
    async (_deps: object, { readEach, query, now }) => {
      const { range = '24h' } = query
      const parts = await readEach(({ db, scope }) => readMeasured(db, { range, now, scope }))
      const series = buildSeries(range, now, parts.flat())
      return {
        data: {
          range,
          bucket_seconds: RANGES[range].stepMs / 1_000,
          ...toAttempts(series),
          buckets: series.buckets.map((bucket) => ({ at: bucket.at.toISOString(), ...toAttempts(bucket) })),
          causes: series.causes,
        },
        message: `Attempts since ${findStart(range, now).toISOString()}.`,
      }
    },
  ),
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/webhook',
      action: 'dashboard-webhooks',
      ownAccounts: true,
      summary: 'Activity of webhooks in the last 24 hours',
      description:
        'The figures of up to 200 webhooks, in the order of the request: attempts by the hour in which they ended, when ' +
        'the newest one ended, and the number of event types of each. Webhooks that are deleted, or that the caller does not reach, are left out.',
      query: Type.Object({
        webhook: Type.Array(UuidSchema, { minItems: 1, maxItems: WEBHOOKS_LIMIT, description: 'Ids of webhooks.' }),
      }),
      data: named('WebhookActivities', Type.Array(ActivitySchema)),
    },
    async (_deps: object, { readEach, query: { webhook: webhooks }, now }) => {
      const parts = await readEach(({ db, scope }) => readActivity(db, { webhooks, now, scope }))
      return {
        data: orderActivities(parts, webhooks).map(toActivityRow),
        message: 'Webhooks of the last 24 hours.',
      }
    },
  ),
]
