import type { EventTypeId, IdMaker } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import { invalidField, notFound, orNotFound, Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildDeactivated, resolveEntries, splitEntries, UNKNOWN } from '../envelope/event-entry.ts'
import { changeSubscriptions, findEventSet, lockEventSet } from './event-set.store.ts'
import {
  findSubscription,
  insertSubscription,
  lockMove,
  type NamedType,
  removeSubscription,
  type SubscribingWebhook,
  type SubscriptionRecord,
} from './subscription.store.ts'

/** Always part of a webhook's event set (docs/contract/webhooks.md#event-set). */
export const TEST_EVENT = 'webhook.test'

/** A subscription without effect, or to a deprecated event type. */
export interface SubscriptionWarning {
  event: string
  code: 'never_fires' | 'deprecated'
  message: string
}

type Deps = { ids: IdMaker }

/** 503 while the catalogue holds no event types. */
export function buildUnsynced(): Problem {
  return new Problem('dependency_unavailable', 'The catalogue is not synced yet: run signalbox catalogue sync.', {
    headers: { 'retry-after': '5' },
  })
}

/**
 * The event types that an account webhook never receives (docs/contract/events.md#routing-rules), and those that are
 * deprecated, which are delivered as before (docs/contract/events.md#deprecation). Pure.
 */
export function findWarnings(
  webhook: Pick<SubscribingWebhook, 'isGlobal'>,
  events: readonly Pick<EventTypeRecord, 'internal' | 'accountScope' | 'deprecationRemedy'>[],
): SubscriptionWarning[] {
  const never = events.filter(
    (event) => !webhook.isGlobal && event.accountScope === 'none' && event.internal !== TEST_EVENT,
  )
  const deprecated = events.flatMap(({ internal: event, deprecationRemedy: remedy }) =>
    remedy === null ? [] : [{ event, code: 'deprecated' as const, message: `${event} is deprecated: ${remedy}` }],
  )
  return [
    ...never.map((event) => ({
      event: event.internal,
      code: 'never_fires' as const,
      message: `${event.internal} has no owning account, so it never reaches a webhook that is scoped to one. Use a global webhook.`,
    })),
    ...deprecated,
  ]
}

/** The message of an answer, with subscriptions without effect. */
export function sayWarnings(message: string, warnings: readonly SubscriptionWarning[]): string {
  return [message, ...warnings.map((warning) => warning.message)].join(' ')
}

/** Changes that an event set needs: links to add and links to remove. Pure. `webhook.test` always stays. */
export function planEventSet(
  current: readonly EventTypeId[],
  wanted: readonly EventTypeId[],
  test: EventTypeId,
): { add: EventTypeId[]; remove: EventTypeId[] } {
  const target = new Set([test, ...wanted])
  const present = new Set(current)
  return {
    add: [...target].filter((id) => !present.has(id)),
    remove: current.filter((id) => !target.has(id)),
  }
}

/** A webhook's event set: the webhook, its event types with `webhook.test` first, and those without effect. */
export interface WebhookEventSet {
  webhook: SubscribingWebhook
  events: EventTypeRecord[]
  warnings: SubscriptionWarning[]
}

function buildEventSet(webhook: SubscribingWebhook, events: readonly EventTypeRecord[]): WebhookEventSet {
  const ordered = [
    ...events.filter((event) => event.internal === TEST_EVENT),
    ...events.filter((event) => event.internal !== TEST_EVENT),
  ]
  return { webhook, events: ordered, warnings: findWarnings(webhook, ordered) }
}

/** The event set of the existing webhook with this id, or a 404. */
export async function loadEventSet(db: Database, webhook: string): Promise<WebhookEventSet> {
  const found = orNotFound(await findEventSet(db, webhook), 'webhook')
  return buildEventSet(found.webhook, found.events)
}

/** Replaces a webhook's event set by ids or names; `growth` is its increase. Throws 404, and a 422 at an entry. */
export async function replaceEventSet(
  deps: Deps,
  db: Database,
  id: string,
  input: { events: readonly string[]; now: Date },
): Promise<WebhookEventSet & { before: readonly EventTypeRecord[]; isChanged: boolean; growth: number }> {
  const { ids, names } = splitEntries(input.events)
  const found = orNotFound(await lockEventSet(db, { webhook: id, names: [TEST_EVENT, ...names], ids }), 'webhook')
  const { webhook, events } = found
  const test = events.find((event) => event.internal === TEST_EVENT)
  if (!test) throw buildUnsynced()
  const wanted = resolveEntries(input.events, events)
  const before = events.filter((event) => event.isSubscribed)
  const current = before.map((event) => event.id)
  const { add, remove } = planEventSet(current, wanted, test.id)
  const links = add.map((event) => ({ id: deps.ids.next<'subscription'>(), event }))
  await changeSubscriptions(db, { webhook: webhook.id, remove, add: links, now: input.now })
  const kept = events.filter((event) => !remove.includes(event.id))
  const isChanged = add.length + remove.length > 0
  return { ...buildEventSet(webhook, kept), before, isChanged, growth: add.length - remove.length }
}

/** An existing link with its webhook and the name of its event type, or a 404. */
export async function loadSubscription(db: Database, id: string) {
  return orNotFound(await findSubscription(db, id), 'subscription')
}

/** Checks the event type of a new link. Throws a 422 on `event` for an unknown or deactivated one. */
function checkLinkable(event: NamedType | undefined): NamedType {
  const broken = event === undefined ? UNKNOWN : event.isActived ? undefined : buildDeactivated(event)
  if (broken) throw invalidField('event', broken.code, broken.message)
  return event as NamedType
}

function buildSubscribed({ internal }: NamedType): Problem {
  return new Problem('conflict', `The webhook subscribes to ${internal} already.`)
}

export interface ChangedSubscription {
  subscription: SubscriptionRecord
  webhook: SubscribingWebhook
  warnings: SubscriptionWarning[]
}

/** Subscribes a webhook to one event type; a deleted link is restored. Throws a 422, and 409 for an existing link. */
export async function subscribe(
  deps: Deps,
  db: Database,
  input: { webhook: string; event: string; now: Date },
): Promise<ChangedSubscription> {
  const { webhook, eventType, subscription } = await insertSubscription(db, { id: deps.ids.next(), ...input })
  if (!webhook) throw buildUnknownWebhook()
  const event = checkLinkable(eventType)
  if (!subscription) throw buildSubscribed(event)
  return { subscription, webhook, warnings: findWarnings(webhook, [event]) }
}

/** 422 for an unknown webhook in a body, or one outside the caller's scope. */
export function buildUnknownWebhook(): Problem {
  return invalidField('webhook', 'unknown_webhook', 'is not a webhook; GET /api/v3/webhook/webhook lists them')
}

/** Unsubscribes (soft delete). Throws 404, and a 409 for `webhook.test`, which cannot be removed. */
export async function unsubscribe(
  db: Database,
  id: string,
  now: Date,
): Promise<{ subscription: SubscriptionRecord; webhook: SubscribingWebhook }> {
  const removed = await removeSubscription(db, id, { kept: TEST_EVENT, now })
  if (removed) return removed
  const { internal } = await loadSubscription(db, id)
  if (internal !== TEST_EVENT) throw notFound('subscription')
  throw buildTestKept()
}

function buildTestKept(): Problem {
  return new Problem('conflict', `${TEST_EVENT} is always part of a webhook's event set.`)
}

/** Moves a link to another event type, in one transaction: the new one has its own id. Throws 404, 422, 409. */
export async function changeSubscription(
  deps: Deps,
  db: Database,
  input: { id: string; event: string; now: Date },
): Promise<ChangedSubscription & { isChanged: boolean }> {
  const { id, event, now } = input
  const move = orNotFound(await lockMove(db, id, event), 'subscription')
  const { subscription, webhook, eventType, present } = move
  if (event === subscription.event) {
    const warnings = findWarnings(webhook, eventType ? [eventType] : [])
    return { subscription, webhook, warnings, isChanged: false }
  }
  // An unknown event type is a 422 before any other conflict (docs/contract/api.md#check-order).
  const linked = checkLinkable(eventType)
  if (move.internal === TEST_EVENT) throw buildTestKept()
  if (present && !present.isDeleted) throw buildSubscribed(linked)
  const added = { id: present?.id ?? deps.ids.next<'subscription'>(), event: event as EventTypeId }
  await changeSubscriptions(db, { webhook: webhook.id, remove: [subscription.event], add: [added], now })
  const times = { createdAt: present?.createdAt ?? now, updatedAt: now, deletedAt: null }
  return {
    subscription: { ...added, webhook: webhook.id, ...times },
    webhook,
    warnings: findWarnings(webhook, [linked]),
    isChanged: true,
  }
}
