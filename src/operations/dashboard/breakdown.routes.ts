import { notFound } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams, namedObject, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { BY_WEBHOOK } from '../../webhook/reach/row-owner.ts'
import { addShares } from './add-up.ts'
import { findBreakdown, readEventShares } from './breakdown.store.ts'
import { buildBreakdown, findBreakdownStart } from './breakdown.ts'
import { OF_DASHBOARD, RangeQuery, RangeSchema } from './range.schema.ts'

const Count = Type.Integer()

const EventShareSchema = namedObject('EventShare', {
  event: Type.String({ description: 'An event type.' }),
  attempts: Count,
  failed: Type.Integer({ description: 'Those that did not deliver.' }),
})

const BreakdownSchema = namedObject('WebhookBreakdown', {
  range: RangeSchema,
  since: TimestampSchema,
  attempts: Count,
  failed: Type.Integer({ description: 'Attempts that did not deliver.' }),
  answers: Type.Array(
    namedObject('AnswerShare', {
      answer: Type.String({ description: '`http_2xx`, or a failure class of the attempt log.' }),
      attempts: Count,
    }),
  ),
  events: Type.Array(EventShareSchema, { description: 'The 50 event types with the most attempts.' }),
  event_types: Type.Integer({ description: 'Event types with attempts.' }),
})

const EventSharesSchema = namedObject('EventShares', {
  range: RangeSchema,
  since: TimestampSchema,
  events: Type.Array(EventShareSchema),
})

export const breakdownRoutes: Routes<object> = [
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/webhook/{id}',
      action: 'dashboard-breakdown',
      cell: BY_WEBHOOK,
      ownAccounts: true,
      summary: 'Attempts of a webhook by answer and by event type',
      description:
        'The attempts of a range, by the class of their HTTP status or why there was none, and by event type, the most ' +
        'frequent first. The range begins at a whole hour (`1h`: the one before this, `24h`) or day of UTC, and ends now.',
      params: IdParams,
      query: RangeQuery,
      data: BreakdownSchema,
    },
    async (_deps: object, { db, params, query, scope, now }) => {
      const { range = '24h' } = query
      const start = findBreakdownStart(range, now, 'webhook')
      const shares = await findBreakdown(db, { webhook: params.id, scope, start })
      if (!shares) throw notFound('webhook')
      const { eventTypes, ...breakdown } = buildBreakdown(shares)
      return {
        data: { range, since: start.toISOString(), ...breakdown, event_types: eventTypes },
        message: `Attempts of the webhook since ${start.toISOString()}.`,
      }
    },
  ),
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/event',
      action: 'dashboard-events',
      ownAccounts: true,
      summary: 'Attempts by event type',
      description:
        'The attempts of a range by event type, the most frequent first. Event types without attempts are left out. A ' +
        'caller who holds the permission for some accounts gets the attempts of the webhooks of these.',
      query: RangeQuery,
      data: EventSharesSchema,
    },
    async (_deps: object, { readEach, query, now }) => {
      const { range = '24h' } = query
      const start = findBreakdownStart(range, now, 'all')
      const parts = await readEach(({ db, scope }) => readEventShares(db, { scope, start }))
      const { events } = buildBreakdown(addShares(parts), Number.POSITIVE_INFINITY)
      return { data: { range, since: start.toISOString(), events }, message: 'Attempts by event type.' }
    },
  ),
]
