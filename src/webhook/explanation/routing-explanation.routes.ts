import { BY_EVENT, checkEvent } from '../../event/occurrence/event.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, IdParams, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { StatusSchema } from '../ledger/dispatch.schema.ts'
import { EXPLAINED_WEBHOOKS_LIMIT, type ExplainedRouting, explainRouting } from './routing-explanation.ts'

const VERDICTS = [
  'delivered',
  'waiting',
  'failed',
  'cancelled',
  'inactive',
  'not_subscribed',
  'other_account',
  'other_resource',
  'no_owner',
  'purge',
  'created_later',
  'excluded',
  'deleted',
  'changed_since',
] as const

const ExplanationSchema = namedObject('RoutingExplanation', {
  event_id: UuidSchema,
  event: Type.String(),
  account: nullable(UuidSchema),
  routed_at: nullable(TimestampSchema),
  judged_at: Type.String({ ...TimestampSchema, description: 'The instant at which `current_state` was looked at.' }),
  summary: Type.Record(Type.String(), Type.Integer(), { description: 'How many of `webhooks` have each verdict.' }),
  truncated: Type.Boolean({
    description: `Whether there are more than ${EXPLAINED_WEBHOOKS_LIMIT} webhooks. Ask for one with \`webhook\`.`,
  }),
  webhooks: Type.Array(
    namedObject('WebhookRouting', {
      webhook: UuidSchema,
      name: nullable(Type.String()),
      is_global: Type.Boolean(),
      account: nullable(UuidSchema),
      is_actived: Type.Boolean(),
      verdict: enumSchema(VERDICTS),
      basis: enumSchema(['ledger', 'current_state'], {
        description:
          '`ledger`: the ledger row is authoritative. `current_state`: decided by the current state of the webhook.',
      }),
      reason: Type.String({ description: 'The cause, and what to do about it.' }),
      dispatch: nullable(UuidSchema),
      dispatch_status: nullable(StatusSchema),
    }),
    { description: 'Those with a ledger row first, then the others, oldest first.' },
  ),
})

function toEntry({
  webhook,
  verdict,
  basis,
  reason,
}: ExplainedRouting): Static<typeof ExplanationSchema>['webhooks'][number] {
  return {
    webhook: webhook.id,
    name: webhook.name,
    is_global: webhook.isGlobal,
    account: webhook.account,
    is_actived: webhook.isActived,
    verdict,
    basis,
    reason,
    dispatch: webhook.dispatch?.id ?? null,
    dispatch_status: webhook.dispatch?.status ?? null,
  }
}

export const routingExplanationRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/event-occurrence/{id}/routing',
      resource: 'event-occurrence',
      action: 'routing',
      accountScope: 'account',
      cell: BY_EVENT,
      ownAccounts: true,
      summary: 'Explain the routing of an event',
      description:
        'One verdict for each webhook, deleted ones too while their row exists; also when none matched. Where the ledger ' +
        'has a row, the row is the fact (`basis: ledger`). Where it has none, the rule of the router is asked again about ' +
        'the webhook as it stands at `judged_at` (`basis: current_state`): what was changed and changed back since the ' +
        'routing cannot be seen.',
      params: IdParams,
      query: Type.Object({
        webhook: Type.Optional(Type.String({ ...UuidSchema, description: 'Only this webhook.' })),
      }),
      data: ExplanationSchema,
    },
    {
      row: { find: (_deps: object, { db, params, scope }) => checkEvent(db, params.id, scope), neededBy: 'scope' },
      handle: async (_deps, { db, params, scope, query, now }) => {
        const asked = { webhook: query.webhook ?? null, scope, now }
        const { event, entries, summary, isTruncated } = await explainRouting(db, params.id, asked)
        return {
          data: {
            event_id: event.id,
            event: event.type,
            account: event.account,
            routed_at: event.routedAt?.toISOString() ?? null,
            judged_at: now.toISOString(),
            summary,
            truncated: isTruncated,
            webhooks: entries.map(toEntry),
          },
          message: describeSummary(summary),
          changed: [{ id: event.id, account: event.account }],
        }
      },
    },
  ),
]

function describeSummary(summary: Partial<Record<string, number>>): string {
  const counts = VERDICTS.flatMap((verdict) => (summary[verdict] ? [`${summary[verdict]} ${verdict}`] : []))
  return counts.length === 0 ? 'There is no webhook.' : `Webhooks: ${counts.join(', ')}.`
}
