import type { AccountId, EventId, IdMaker, WebhookId } from '../../base/id.ts'
import { notFound, orNotFound } from '../../http/problem/problem.ts'
import type { AccountScope } from '../../http/route/route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type EventRecord,
  findEvent,
  findEventOwner,
  insertEvents,
  insertRoutedEvent,
  isVisibleTo,
  type StoredEvent,
} from './event.store.ts'

export { findEventOwner }

/** The database of the event in the path. */
export const BY_EVENT = { by: 'row', findOwner: findEventOwner } as const

/** An event without an id. */
export interface EventDraft {
  /** Set if the id must be known before; otherwise one is generated. */
  id?: EventId
  /** `<resource>.<action>`, a row of the catalogue. */
  type: string
  /** Scope of the event type; with `none` the event has no account. */
  accountScope: AccountScope
  /** The owner, resolved now. A purge has none (docs/contract/events.md#routing-rules). */
  account: AccountId | null
  resource: string
  action: string
  /** The resource's `document_id`, or the outside service's own id. */
  resourceId: string | null
  /** Address of the resource: a path, a URL of another service, or null (docs/contract/webhooks.md#envelope). */
  url: string | null
  /** The subject of the event, to which it is never delivered. */
  excludedWebhook?: WebhookId
  /** The trace of the causing request, as text; without a request the trace starts with the delivery. */
  trace?: string | null
}

/** The event with this id, or a 404. */
export async function loadEvent(db: Database, id: string): Promise<StoredEvent> {
  return orNotFound(await findEvent(db, { id }), 'event')
}

/** Checks that an event exists and is visible to a caller of these accounts. Throws 404. */
export async function checkEvent(db: Database, id: string, scope: PermissionScope): Promise<void> {
  if (scope === 'all') await loadEvent(db, id)
  else if (!(await isVisibleTo(db, { id, accounts: scope }))) throw notFound('event')
}

export interface EventDeps {
  ids: IdMaker
  /** `ENABLE_API_EVENT_QUEUE`: when false, nothing is recorded (docs/contract/events.md#event-queue-switch). */
  enableApiEventQueue: boolean
}

/** The events of `drafts`, each with its id; none when the event queue is off. Pure except for the ids. */
export function buildEvents(deps: EventDeps, drafts: readonly EventDraft[], now: Date): EventRecord[] {
  return deps.enableApiEventQueue ? drafts.map((draft) => buildEvent(deps, draft, now)) : []
}

function buildEvent(deps: Pick<EventDeps, 'ids'>, draft: EventDraft, now: Date): EventRecord {
  const isPurge = draft.action === 'purge'
  return {
    id: draft.id ?? deps.ids.next<'event'>(),
    type: draft.type,
    account: draft.accountScope === 'none' || isPurge ? null : draft.account,
    resource: draft.resource,
    action: draft.action,
    resourceId: draft.resourceId,
    url: draft.url,
    isPurge,
    excludedWebhook: draft.excludedWebhook ?? null,
    trace: draft.trace ?? null,
    createdAt: now,
  }
}

/** Records events atomically with the change (docs/contract/events.md#atomicity); none when the queue is off. */
export async function recordEvents(
  deps: EventDeps,
  db: Database,
  drafts: readonly EventDraft[],
  now: Date,
): Promise<EventRecord[]> {
  const events = buildEvents(deps, drafts, now)
  if (events.length > 0) await insertEvents(db, events)
  return events
}

/** Records an event that its caller routes itself: the router does not see it (a test is for one webhook only). */
export async function recordRoutedEvent(
  deps: Pick<EventDeps, 'ids'>,
  db: Database,
  draft: EventDraft,
  now: Date,
): Promise<EventRecord> {
  const event = buildEvent(deps, draft, now)
  await insertRoutedEvent(db, event)
  return event
}
