import { type EventTypeRecord, findEventTypes, findEventTypesByName } from '../catalogue/catalogue.store.ts'
import { loadEventType } from '../catalogue/event-type.ts'
import { type FieldError, invalidField, notFound, Problem } from '../http/problem.ts'
import type { EventTypeId, IdMaker, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import {
  addSubscriptions,
  findSubscription,
  findSubscriptionOf,
  listSubscribedEventTypes,
  removeSubscriptions,
  type SubscriptionRecord,
} from './subscription.store.ts'
import type { WebhookRecord } from './webhook.store.ts'

/** Always part of a webhook's event set (docs/contract/webhooks.md#event-set). */
const TEST_EVENT = 'webhook.test'

/** A subscription that will never fire. */
export interface SubscriptionWarning {
  event: string
  code: 'never_fires'
  message: string
}

type Deps = { ids: IdMaker }

/** Subscribes a new webhook to `webhook.test`. */
export async function subscribeToTest(deps: Deps, db: Database, webhook: WebhookId, now: Date): Promise<void> {
  const test = await loadTestEventType(db)
  await addSubscriptions(db, deps.ids, { webhook, events: [test.id], now })
}

async function loadTestEventType(db: Database): Promise<EventTypeRecord> {
  const [test] = await findEventTypesByName(db, [TEST_EVENT])
  if (!test)
    throw new Problem('dependency_unavailable', 'The catalogue is not synced yet: run signalbox catalogue sync.', {
      headers: { 'retry-after': '5' },
    })
  return test
}

/** Says of each event type that an account webhook will never receive why not (docs/contract/events.md#routing-rules). */
export function findWarnings(
  webhook: Pick<WebhookRecord, 'isGlobal'>,
  events: readonly Pick<EventTypeRecord, 'internal' | 'accountScope'>[],
): SubscriptionWarning[] {
  if (webhook.isGlobal) return []
  return events
    .filter((event) => event.accountScope === 'none' && event.internal !== TEST_EVENT)
    .map((event) => ({
      event: event.internal,
      code: 'never_fires',
      message: `${event.internal} has no owning account, so it never reaches a webhook that is scoped to one. Use a global webhook.`,
    }))
}

/** What an event set must become: which links to add and which to remove. Pure. `webhook.test` always stays. */
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

/** The event types a webhook subscribes to, `webhook.test` first. */
export async function readEventSet(db: Database, webhook: WebhookRecord) {
  const events = await listSubscribedEventTypes(db, webhook.id)
  const ordered = [
    ...events.filter((event) => event.internal === TEST_EVENT),
    ...events.filter((event) => event.internal !== TEST_EVENT),
  ]
  return { events: ordered, warnings: findWarnings(webhook, ordered) }
}

/**
 * Replaces a locked webhook's event set: links absent from `events` are soft-deleted, present ones kept, new ones inserted or
 * revived. `isChanged` says whether any was. Throws a 422 that names each id which is no event type, or one that was deactivated and is not in the set yet.
 */
export async function replaceEventSet(
  deps: Deps,
  db: Database,
  webhook: WebhookRecord,
  input: { events: readonly string[]; now: Date },
) {
  const test = await loadTestEventType(db)
  const current = await listSubscribedEventTypes(db, webhook.id)
  const known = await findEventTypes(db, [...new Set(input.events)])
  checkSubscribable(input.events, known, new Set(current.map((event) => event.id)))
  const plan = planEventSet(
    current.map((event) => event.id),
    known.map((event) => event.id),
    test.id,
  )
  await removeSubscriptions(db, { webhook: webhook.id, events: plan.remove, now: input.now })
  await addSubscriptions(db, deps.ids, { webhook: webhook.id, events: plan.add, now: input.now })
  return { ...(await readEventSet(db, webhook)), isChanged: plan.add.length + plan.remove.length > 0 }
}

function checkSubscribable(
  wanted: readonly string[],
  known: readonly EventTypeRecord[],
  current: ReadonlySet<EventTypeId>,
): void {
  const byId = new Map<string, EventTypeRecord>(known.map((event) => [event.id, event]))
  const errors: FieldError[] = wanted.flatMap((id, index) => {
    const event = byId.get(id)
    const path = `events.${index}`
    if (!event)
      return [{ path, code: 'unknown_event', message: 'is no event type; GET /api/v3/webhook/event lists them' }]
    if (!event.isActived && !current.has(event.id))
      return [{ path, code: 'event_deactivated', message: `${event.internal} was deactivated by an operator` }]
    return []
  })
  const [first] = errors
  if (first) throw new Problem('validation_failed', `${first.path}: ${first.message}`, { errors })
}

/** The living link with this id, or a 404. */
export async function loadSubscription(db: Database, id: string): Promise<SubscriptionRecord> {
  const subscription = await findSubscription(db, id)
  if (!subscription) throw notFound('subscription')
  return subscription
}

/** The event type that a new link may name. Throws a 422 on `event` when there is none, or it was deactivated. */
async function loadSubscribable(db: Database, id: string): Promise<EventTypeRecord> {
  const [event] = await findEventTypes(db, [id])
  if (!event) throw invalidField('event', 'unknown_event', 'is no event type; GET /api/v3/webhook/event lists them')
  if (!event.isActived)
    throw invalidField('event', 'event_deactivated', `${event.internal} was deactivated by an operator`)
  return event
}

/** Subscribes `webhook` to one event type; a deleted link is revived, a living one is a 409. */
export async function subscribe(
  deps: Deps,
  db: Database,
  webhook: WebhookRecord,
  input: { event: string; now: Date },
): Promise<{ subscription: SubscriptionRecord; warnings: SubscriptionWarning[] }> {
  const event = await loadSubscribable(db, input.event)
  const present = await findSubscriptionOf(db, webhook.id, event.id)
  if (present && present.deletedAt === null)
    throw new Problem('conflict', `The webhook subscribes to ${event.internal} already.`)
  await addSubscriptions(db, deps.ids, { webhook: webhook.id, events: [event.id], now: input.now })
  const subscription = await findSubscriptionOf(db, webhook.id, event.id)
  if (!subscription) throw new Error('a subscription that was just added is gone')
  return { subscription, warnings: findWarnings(webhook, [event]) }
}

/** Unsubscribes (soft delete). `webhook.test` cannot go: 409. */
export async function unsubscribe(
  db: Database,
  subscription: SubscriptionRecord,
  now: Date,
): Promise<SubscriptionRecord> {
  const event = await loadEventType(db, subscription.event)
  if (event.internal === TEST_EVENT)
    throw new Problem('conflict', `${TEST_EVENT} is always part of a webhook's event set.`)
  await removeSubscriptions(db, { webhook: subscription.webhook, events: [subscription.event], now })
  return { ...subscription, deletedAt: now, updatedAt: now }
}

/**
 * Moves a link to another event type: the old one is unsubscribed, the new one subscribed, in one transaction. What comes
 * back is the link to the new event type, with its own id: one that was there before is revived. `isChanged` is false for
 * the event type that the link has already.
 */
export async function changeSubscription(
  deps: Deps,
  db: Database,
  input: { subscription: SubscriptionRecord; webhook: WebhookRecord; event: string; now: Date },
): Promise<{ subscription: SubscriptionRecord; warnings: SubscriptionWarning[]; isChanged: boolean }> {
  const { subscription, webhook, event, now } = input
  if (event === subscription.event) {
    const warnings = findWarnings(webhook, [await loadEventType(db, event)])
    return { subscription, warnings, isChanged: false }
  }
  // Before the old link goes: an unknown event type is a 422, whatever else would be in the way (docs/contract/api.md#errors).
  await loadSubscribable(db, event)
  await unsubscribe(db, subscription, now)
  return { ...(await subscribe(deps, db, webhook, { event, now })), isChanged: true }
}
