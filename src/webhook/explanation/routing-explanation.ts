import { orNotFound } from '../../http/problem/problem.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { decideRouting, type RoutingVerdict } from '../delivery/routing.ts'
import {
  type ExplainedEvent,
  type ExplainedType,
  type ExplainedWebhook,
  findExplained,
} from './routing-explanation.store.ts'

/** Maximum number of webhooks in one explanation. Others are explained by id. */
export const EXPLAINED_WEBHOOKS_LIMIT = 1_000

/** Result of an event for a webhook. */
export type ExplanationVerdict =
  /** The ledger row is `success`. */
  | 'delivered'
  /** The ledger row ended `exhausted` or `failed`. */
  | 'failed'
  /** The ledger row ended because the webhook was deleted. */
  | 'cancelled'
  /** The ledger row is `pending` or `retrying`; or the event is not yet routed and this webhook would receive it. */
  | 'waiting'
  /** The event was routed without this webhook, which would receive it in its current state. */
  | 'changed_since'
  | Exclude<RoutingVerdict, 'deliver'>

/** One webhook of an explanation. */
export interface ExplainedRouting {
  webhook: ExplainedWebhook
  verdict: ExplanationVerdict
  /** `ledger`: the row is authoritative. `current_state`: decided by the webhook's current state. */
  basis: 'ledger' | 'current_state'
  /** A sentence with the reason and the remedy. */
  reason: string
}

/** The routing decision of an event for each webhook. */
export interface RoutingExplanation {
  event: ExplainedEvent
  entries: ExplainedRouting[]
  summary: Partial<Record<ExplanationVerdict, number>>
  /** Whether there are more webhooks than the limit. */
  isTruncated: boolean
}

/** Explains an event for the stored webhooks within `scope`, deleted ones too, or one. Throws 404. */
export async function explainRouting(
  db: Database,
  id: string,
  input: { webhook: string | null; scope: PermissionScope; now: Date },
): Promise<RoutingExplanation> {
  const { webhook: only, scope, now } = input
  const found = orNotFound(
    await findExplained(db, { event: id, webhook: only, scope, limit: EXPLAINED_WEBHOOKS_LIMIT + 1 }),
    'event',
  )
  const { event, eventType } = found
  const webhooks = found.webhooks.slice(0, EXPLAINED_WEBHOOKS_LIMIT)
  const entries = webhooks.map((webhook) => explainWebhook({ event, eventType, webhook, now }))
  const isTruncated = found.webhooks.length > webhooks.length
  return { event, entries, summary: countVerdicts(entries), isTruncated }
}

function countVerdicts(entries: readonly ExplainedRouting[]): RoutingExplanation['summary'] {
  const summary: RoutingExplanation['summary'] = {}
  for (const { verdict } of entries) summary[verdict] = (summary[verdict] ?? 0) + 1
  return summary
}

interface Explained {
  event: ExplainedEvent
  eventType: ExplainedType | undefined
  webhook: ExplainedWebhook
  now: Date
}

/**
 * Explains an event for one webhook. A ledger row is authoritative. Without one, the router's rule is applied to the
 * webhook's current state; its link and its deletion count as of the routing, since their times are known. Pure.
 */
export function explainWebhook(explained: Explained): ExplainedRouting {
  const { webhook } = explained
  if (webhook.dispatch) {
    const verdict = verdictOfRow(webhook.dispatch.status)
    return { webhook, verdict, basis: 'ledger', reason: describeRow(webhook.dispatch) }
  }
  const verdict = decideWithoutRow(explained)
  return { webhook, verdict, basis: 'current_state', reason: REASONS[verdict](explained) }
}

type RowVerdict = 'delivered' | 'failed' | 'cancelled' | 'waiting'
type RowlessVerdict = Exclude<ExplanationVerdict, 'delivered' | 'failed' | 'cancelled'>

function verdictOfRow(status: NonNullable<ExplainedWebhook['dispatch']>['status']): RowVerdict {
  switch (status) {
    case 'success':
      return 'delivered'
    case 'pending':
    case 'retrying':
      return 'waiting'
    case 'cancelled':
      return 'cancelled'
    default:
      return 'failed'
  }
}

function decideWithoutRow({ event, eventType, webhook, now }: Explained): RowlessVerdict {
  // A test is for one webhook and never routed, although every webhook subscribes to it.
  if (event.type === 'webhook.test') return 'excluded'
  const asOf = event.routedAt ?? now
  const verdict = decideRouting(
    { ...event, accountScope: eventType?.accountScope ?? 'none' },
    {
      ...webhook,
      deletedAt: webhook.deletedAt && webhook.deletedAt <= asOf ? webhook.deletedAt : null,
      isSubscribed: (eventType?.isActived ?? false) && wasSubscribed(webhook.link, asOf),
    },
  )
  if (verdict !== 'deliver') return verdict
  if (event.routedAt === null) return 'waiting'
  return webhook.deletedAt === null ? 'changed_since' : 'deleted'
}

/** Whether a link existed at `asOf`. An existing one counts since its last write. */
function wasSubscribed(link: ExplainedWebhook['link'], asOf: Date): boolean {
  if (!link || link.createdAt > asOf) return false
  return link.deletedAt === null ? link.updatedAt <= asOf : link.deletedAt > asOf
}

function describeRow({ id, status, attempts, lastError }: NonNullable<ExplainedWebhook['dispatch']>): string {
  const posts = attempts === 1 ? 'one POST' : `${attempts} POSTs`
  switch (status) {
    case 'success':
      return `Delivered after ${posts}.`
    case 'pending':
      return 'Its ledger row waits for the first POST. No POST is sent while the webhook is inactive.'
    case 'retrying':
      return `Its ledger row waits for the next POST after ${posts} (last error: ${lastError ?? 'none'}). No POST is sent while the webhook is inactive.`
    case 'cancelled':
      return 'The webhook was deleted before the event could be delivered. Nothing is sent to a deleted webhook.'
    default:
      return `Ended ${status} after ${posts} (last error: ${lastError ?? 'none'}). Repair the subscriber, then POST /api/v3/webhook/dispatch/${id}/replay.`
  }
}

const REASONS: Record<RowlessVerdict, (explained: Explained) => string> = {
  waiting: () => 'The event is not routed yet; this webhook would receive it. Repeat the request in a second.',
  changed_since: ({ event }) =>
    `It would receive such an event now, but did not when this event was routed at ${event.routedAt?.toISOString()}: it was activated, ` +
    'or its scope or the event type changed, afterwards. Past events are not sent again; the next one will be.',
  excluded: ({ event, webhook }) =>
    event.type === 'webhook.test'
      ? `A test is delivered only to the webhook of the request. POST /api/v3/webhook/webhook/${webhook.id}/test sends one to this webhook.`
      : 'The event is about this webhook, and a webhook does not receive the alerts about itself. Subscribe with another webhook.',
  deleted: ({ webhook }) =>
    `The webhook was deleted at ${webhook.deletedAt?.toISOString()}. Create a new one to receive events again.`,
  created_later: ({ webhook }) =>
    `The webhook was created at ${webhook.createdAt.toISOString()}, after the event. It receives only later events.`,
  not_subscribed: describeNotSubscribed,
  inactive: ({ webhook }) =>
    `The webhook is inactive${webhook.disabledReason ? ` (${webhook.disabledReason})` : ''}, and events of that time are not kept for it. ` +
    `Activate it with PATCH /api/v3/webhook/webhook/${webhook.id}/active to receive the next ones.`,
  no_owner: ({ event }) =>
    `${event.type} has no owner, so a webhook of one account never receives it. Use a global webhook (is_global true).`,
  purge: () => 'Purge events reach global webhooks only. Use a global webhook (is_global true).',
  other_account: ({ event, webhook }) =>
    `The webhook belongs to account ${webhook.account}, the event to ${event.account ?? 'none'}. ` +
    'Change the account of the webhook, or use a global one.',
  other_resource: ({ event, webhook }) =>
    `The webhook receives the events of ${countResources(webhook)} only, and the event is about ` +
    `${event.resourceId ?? 'none'}. Change resource_ids of the webhook to receive the next ones.`,
}

/** The number of resources that a webhook is limited to, in words. */
export function countResources({ resourceIds }: Pick<ExplainedWebhook, 'resourceIds'>): string {
  return resourceIds?.length === 1 ? 'one resource' : `${resourceIds?.length ?? 0} resources`
}

function describeNotSubscribed({ eventType, event: { type: event }, webhook }: Explained): string {
  if (!eventType) return `${event} is no longer in the catalogue, so no webhook subscribes to it. Sync the catalogue.`
  if (!eventType.isActived)
    return `The event type ${event} is inactive, so no webhook receives it. Activate it with PATCH /api/v3/webhook/event/{id}/active.`
  return `The webhook did not subscribe to ${event} when the event was routed. Add it with PUT /api/v3/webhook/webhook/${webhook.id}/events.`
}
