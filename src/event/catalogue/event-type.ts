import type { IdMaker } from '../../base/id.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { AccountScope } from '../../http/route/route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type EventTypeRecord,
  findEventType,
  findEventTypesByName,
  insertExternalEventType,
  setActiveIfDifferent,
  setVisibleIfDifferent,
} from './catalogue.store.ts'

/** The event type with this id, or a 404. */
export async function loadEventType(db: Database, id: string): Promise<EventTypeRecord> {
  const eventType = await findEventType(db, id)
  if (!eventType) throw notFound('event type')
  return eventType
}

/** Loads an event type; for a caller with an account role only a visible one: of account scope and with the mark. */
export async function loadVisibleEventType(db: Database, id: string, scope: PermissionScope): Promise<EventTypeRecord> {
  const eventType = await loadEventType(db, id)
  const isVisible = scope === 'all' || (eventType.accountScope === 'account' && eventType.isTenantVisible)
  if (!isVisible) throw notFound('event type')
  return eventType
}

/** Shows an event type to account roles, or hides it; `isChanged` is false for an equal value. Throws 404. */
export async function setEventTypeVisible(
  db: Database,
  id: string,
  change: { isTenantVisible: boolean; now: Date },
): Promise<{ eventType: EventTypeRecord; isChanged: boolean }> {
  const changed = await setVisibleIfDifferent(db, id, change)
  return changed
    ? { eventType: changed, isChanged: true }
    : { eventType: await loadEventType(db, id), isChanged: false }
}

/**
 * Registers an event type that another service owns (docs/contract/events.md#publishing-from-outside). A name in use is a
 * 409. `webhook` and `webhook-dispatch` are reserved, so that other services cannot forge events about this service.
 */
export async function registerExternalEventType(
  deps: { ids: IdMaker },
  db: Database,
  input: {
    internal: string
    accountScope: AccountScope
    description: string | null
    isTenantVisible: boolean
    now: Date
  },
): Promise<EventTypeRecord> {
  const resource = input.internal.slice(0, input.internal.indexOf('.'))
  if (['webhook', 'webhook-event', 'webhook-dispatch'].includes(resource))
    throw invalidField('internal', 'reserved', `the resource ${resource} is the service's own; choose another name`)
  const inserted = await insertExternalEventType(db, { id: deps.ids.next(), ...input })
  if (inserted) return inserted
  const [taken] = await findEventTypesByName(db, [input.internal])
  const source = taken ? ` (source ${taken.source})` : ''
  throw new Problem('conflict', `The event type ${input.internal} already exists${source}.`)
}

/**
 * Activates or deactivates an event type; `isChanged` is false for an equal state. An inactive event type takes no new
 * subscriptions and is not delivered; operators deactivate stale ones. Event types of the code (`generated`, by name)
 * cannot be deactivated: webhooks unsubscribe instead. Throws 404, 409.
 */
export async function setEventTypeActive(
  db: Database,
  id: string,
  input: { isActived: boolean; generated: readonly string[]; now: Date },
): Promise<{ eventType: EventTypeRecord; isChanged: boolean }> {
  const { isActived, generated, now } = input
  const changed = await setActiveIfDifferent(db, id, { isActived, kept: generated, now })
  if (changed) return { eventType: changed, isChanged: true }
  const eventType = await loadEventType(db, id)
  if (!isActived && generated.includes(eventType.internal))
    throw new Problem(
      'conflict',
      `${eventType.internal} is produced by a route. Only stale and external event types can be deactivated.`,
    )
  return { eventType, isChanged: false }
}
