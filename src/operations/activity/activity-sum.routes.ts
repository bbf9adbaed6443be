import { REFUSED, SIGN_IN_WAYS } from '../../event/recording/sign-in-count.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, namedObject, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { RangeQuery, RangeSchema } from '../dashboard/range.schema.ts'
import { readSeries, type Sums } from './activity-series.ts'

const Count = Type.Integer()

const SIGN_INS = { succeeded: Count, refused: Count }

const SignInSeries = namedObject('SignInSeries', {
  range: RangeSchema,
  bucket_seconds: Count,
  ...SIGN_INS,
  buckets: Type.Array(namedObject('SignInBucket', { at: TimestampSchema, ...SIGN_INS })),
  ways: Type.Array(namedObject('SignInWay', { way: enumSchema(SIGN_IN_WAYS), sign_ins: Count }), {
    description: 'How the successful ones ended, the most frequent first.',
  }),
})

const MESSAGES = { published: Count, rejected: Count, exhausted: Count }

const MessageSeries = namedObject('RealtimeMessageSeries', {
  range: RangeSchema,
  bucket_seconds: Count,
  ...MESSAGES,
  buckets: Type.Array(namedObject('RealtimeMessageBucket', { at: TimestampSchema, ...MESSAGES })),
})

const signInsOf = (sums: Sums) => {
  const refused = sums.get(REFUSED) ?? 0
  const all = [...sums.values()].reduce((sum, count) => sum + count, 0)
  return { succeeded: all - refused, refused }
}

const messagesOf = (sums: Sums) => ({
  published: sums.get('published') ?? 0,
  rejected: sums.get('rejected') ?? 0,
  exhausted: sums.get('exhausted') ?? 0,
})

const COUNTED = 'They are counted within two minutes, by when they ended, in UTC.'

/** Sign-ins and realtime messages over time (docs/contract/delivery.md#activity). */
export const activitySumRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/dashboard/sign-in',
      resource: 'user',
      action: 'dashboard-sign-ins',
      accountScope: 'none',
      summary: 'Sign-ins over time, and how they ended',
      description: `Successful and refused sign-ins of all users, exchanges of handshakes included. ${COUNTED}`,
      query: RangeQuery,
      data: SignInSeries,
    },
    async (_deps: object, { readEach, query, now }) => {
      const { range = '24h' } = query
      const { start, bucketSeconds, total, buckets } = await readSeries(readEach, { kind: 'sign-in', range, now })
      const ways = SIGN_IN_WAYS.map((way) => ({ way, sign_ins: total.get(way) ?? 0 }))
      return {
        data: {
          range,
          bucket_seconds: bucketSeconds,
          ...signInsOf(total),
          buckets: buckets.map(({ at, sums }) => ({ at, ...signInsOf(sums) })),
          ways: ways.filter(({ sign_ins: count }) => count > 0).sort((a, b) => b.sign_ins - a.sign_ins),
        },
        message: `Sign-ins since ${start.toISOString()}.`,
      }
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/realtime/dashboard/message',
      resource: 'realtime',
      action: 'dashboard-messages',
      accountScope: 'none',
      cell: { by: 'each' },
      summary: 'Realtime messages over time',
      description: `Messages of all accounts by their result. ${COUNTED}`,
      query: RangeQuery,
      data: MessageSeries,
    },
    async (_deps: object, { readEach, query, now }) => {
      const { range = '24h' } = query
      const { start, bucketSeconds, total, buckets } = await readSeries(readEach, { kind: 'realtime', range, now })
      return {
        data: {
          range,
          bucket_seconds: bucketSeconds,
          ...messagesOf(total),
          buckets: buckets.map(({ at, sums }) => ({ at, ...messagesOf(sums) })),
        },
        message: `Realtime messages since ${start.toISOString()}.`,
      }
    },
  ),
]
