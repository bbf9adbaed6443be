import type { AccountId } from '../../base/id.ts'
import { notFound } from '../../http/problem/problem.ts'
import type { ReadEach } from '../../http/route/cell-key.ts'
import { decideRouting, type RoutingVerdict } from '../delivery/routing.ts'
import type { ExplainedWebhook } from './routing-explanation.store.ts'
import { countResources } from './routing-explanation.ts'
import { type Candidates, findCandidates } from './routing-forecast.store.ts'

/** Maximum number of webhooks in one forecast. Others are forecast by id. */
export const FORECAST_WEBHOOKS_LIMIT = 200

export interface ForecastRouting {
  webhook: ExplainedWebhook
  verdict: RoutingVerdict
  /** A sentence with the reason and the remedy. */
  reason: string
}

/** Forecast of the routing of an event at the present time. */
export interface RoutingForecast {
  type: string
  entries: ForecastRouting[]
  /** Whether there are more webhooks than the limit. */
  isTruncated: boolean
}

/** Forecasts which webhooks would receive an event (docs/contract/events.md#routing-forecast). Throws 404. */
export async function forecastRouting(
  readEach: ReadEach,
  eventType: string,
  input: { account: AccountId | null; resourceId: string | null; webhook: string | null; now: Date },
): Promise<RoutingForecast> {
  const { account, resourceId, webhook: only, now } = input
  const asked = { eventType, account, webhook: only, limit: FORECAST_WEBHOOKS_LIMIT + 1 }
  // Global webhooks are in home. Only the database of a webhook knows where it is.
  const accounts = only === null ? [account ?? []].flat() : undefined
  const [home, ...cells] = await readEach(({ db }) => findCandidates(db, asked), accounts)
  if (!home) throw notFound('event type')
  const found = addCandidates(home, cells)
  const webhooks = found.webhooks.slice(0, FORECAST_WEBHOOKS_LIMIT)
  return {
    type: found.type,
    entries: webhooks.map((webhook) => forecastWebhook({ ...found, webhook, account, resourceId, now })),
    isTruncated: found.webhooks.length > webhooks.length,
  }
}

/** The webhooks of home and of cells, each once, in the order of an answer. Pure. */
function addCandidates(home: Candidates, cells: readonly (Candidates | undefined)[]): Candidates {
  const others = cells.flatMap((cell) => cell?.webhooks ?? [])
  if (others.length === 0) return home
  const byId = new Map([...home.webhooks, ...others].map((webhook) => [webhook.id, webhook]))
  const keyOf = ({ isGlobal, createdAt, id }: ExplainedWebhook) => `${isGlobal} ${createdAt.toISOString()} ${id}`
  return { ...home, webhooks: [...byId.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)) }
}

interface Asked extends Omit<Candidates, 'webhooks'> {
  webhook: ExplainedWebhook
  account: AccountId | null
  /** The resource of the event; null for one to which no webhook is limited. */
  resourceId: string | null
  now: Date
}

/** Applies the router's rule to an event at the present time. Pure. */
export function forecastWebhook(asked: Asked): ForecastRouting {
  const { type, eventType, webhook, account, resourceId, now } = asked
  const isPurge = type.endsWith('.purge')
  // A test is for one webhook and never routed, although every webhook subscribes to it.
  const excludedWebhook = type === 'webhook.test' ? webhook.id : null
  const verdict = decideRouting(
    {
      ...{ isPurge, excludedWebhook, resourceId, accountScope: eventType.accountScope },
      ...{ account: isPurge || eventType.accountScope === 'none' ? null : account, createdAt: now, ordinal: null },
    },
    {
      ...webhook,
      isSubscribed: eventType.isActived && webhook.link !== null && webhook.link.deletedAt === null,
    },
  )
  return { webhook, verdict, reason: REASONS[verdict](asked) }
}

const REASONS: Record<RoutingVerdict, (asked: Asked) => string> = {
  deliver: ({ webhook }) =>
    webhook.isGlobal ? 'It subscribes, is active and global.' : 'It subscribes, is active and of this account.',
  excluded: ({ webhook }) =>
    `A test is delivered only to the webhook of the request. POST /api/v3/webhook/webhook/${webhook.id}/test sends one.`,
  deleted: () => 'The webhook is deleted. Create a new one to receive events again.',
  created_later: () => 'The webhook was created after the event.',
  not_subscribed: ({ type, eventType, webhook }) =>
    eventType.isActived
      ? `It does not subscribe to ${type}. Add it with PUT /api/v3/webhook/webhook/${webhook.id}/events.`
      : `The event type ${type} is inactive, so no webhook receives it. Activate it with PATCH /api/v3/webhook/event/{id}/active.`,
  inactive: ({ webhook }) =>
    `It is inactive${webhook.disabledReason ? ` (${webhook.disabledReason})` : ''}. ` +
    `Activate it with PATCH /api/v3/webhook/webhook/${webhook.id}/active.`,
  no_owner: ({ type }) =>
    `${type} has no owner, so a webhook of one account never receives it. Use a global webhook (is_global true).`,
  purge: () => 'Purge events reach global webhooks only. Use a global webhook (is_global true).',
  other_account: ({ webhook, account }) =>
    `The webhook belongs to account ${webhook.account}, the event to ${account ?? 'none'}. ` +
    'Change the account of the webhook, or use a global one.',
  other_resource: ({ webhook, resourceId }) =>
    `The webhook receives the events of ${countResources(webhook)} only` +
    (resourceId === null ? '. Name one of them as resource_id to ask about it.' : `, not of ${resourceId}.`),
}
