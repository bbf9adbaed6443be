import type { AccountId } from '../../base/id.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, IdParams, namedObject, nullable, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { FORECAST_WEBHOOKS_LIMIT, forecastRouting } from './routing-forecast.ts'

const ForecastSchema = namedObject('RoutingForecast', {
  event: Type.String(),
  account: nullable(UuidSchema),
  truncated: Type.Boolean({
    description: `Whether there are more than ${FORECAST_WEBHOOKS_LIMIT} webhooks. Ask for one with \`webhook\`.`,
  }),
  webhooks: Type.Array(
    namedObject('WebhookForecast', {
      webhook: UuidSchema,
      name: nullable(Type.String()),
      is_global: Type.Boolean(),
      account: nullable(UuidSchema),
      is_actived: Type.Boolean(),
      verdict: enumSchema([
        'deliver',
        'excluded',
        'deleted',
        'created_later',
        'not_subscribed',
        'inactive',
        'no_owner',
        'purge',
        'other_account',
        'other_resource',
      ]),
      reason: Type.String({ description: 'The cause, and what to do about it.' }),
    }),
    { description: 'Those of the account first, then the global ones, oldest first.' },
  ),
})

export const routingForecastRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/event/{id}/routing',
      resource: 'event',
      action: 'routing',
      accountScope: 'none',
      cell: { by: 'each' },
      summary: 'Predict the routing of an event type',
      description:
        'The rule of the router, asked about an event that happens now: one verdict for each webhook of `account` and each ' +
        'global one, or for `webhook` alone. Without `account` the event has no owner; without `resource_id` it is about ' +
        'none of the resources that webhooks are limited to.',
      params: IdParams,
      query: Type.Object({
        account: Type.Optional(Type.String({ ...UuidSchema, description: 'The owner of the event.' })),
        resource_id: Type.Optional(
          Type.String({ minLength: 1, maxLength: 255, description: 'The resource that the event is about.' }),
        ),
        webhook: Type.Optional(Type.String({ ...UuidSchema, description: 'Only this webhook.' })),
      }),
      data: ForecastSchema,
    },
    async (_deps: object, { readEach, params, query, now }) => {
      const account = (query.account ?? null) as AccountId | null
      const { type, entries, isTruncated } = await forecastRouting(readEach, params.id, {
        ...{ account, resourceId: query.resource_id ?? null, webhook: query.webhook ?? null, now },
      })
      const count = entries.filter(({ verdict }) => verdict === 'deliver').length
      return {
        data: {
          ...{ event: type, account, truncated: isTruncated },
          webhooks: entries.map(({ webhook, verdict, reason }) => ({
            webhook: webhook.id,
            name: webhook.name,
            is_global: webhook.isGlobal,
            account: webhook.account,
            is_actived: webhook.isActived,
            verdict,
            reason,
          })),
        },
        message: `${count} of ${entries.length} webhooks would receive it.`,
        changed: [{ id: params.id, account: null }],
      }
    },
  ),
]
