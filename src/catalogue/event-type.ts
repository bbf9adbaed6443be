import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountScope } from '../http/route.ts'
import type { IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import {
  type EventTypeRecord,
  findEventType,
  findEventTypesByName,
  insertExternalEventType,
  updateEventTypeActive,
} from './catalogue.store.ts'

/** The event type with this id, or a 404. */
export async function loadEventType(db: Database, id: string): Promise<EventTypeRecord> {
  const eventType = await findEventType(db, id)
  if (!eventType) throw notFound('event type')
  return eventType
}

/**
 * Registers an event type that another service owns (D71). A name that is taken is a 409; `webhook` and
 * `webhook-dispatch` are the service's own resources, so that nobody can forge what it says about itself.
 */
export async function registerExternalEventType(
  deps: { ids: IdMaker },
  db: Database,
  input: { internal: string; accountScope: AccountScope; description: string | null; now: Date },
): Promise<EventTypeRecord> {
  const resource = input.internal.slice(0, input.internal.indexOf('.'))
  if (['webhook', 'webhook-event', 'webhook-dispatch'].includes(resource))
    throw invalidField('internal', 'reserved', `the resource ${resource} is the service's own; choose another name`)
  const [taken] = await findEventTypesByName(db, [input.internal])
  if (taken) throw new Problem('conflict', `The event type ${input.internal} exists already (source ${taken.source}).`)
  return insertExternalEventType(db, { id: deps.ids.next(), ...input })
}

/**
 * Switches an event type off or on. Off, it takes no new subscription and reaches nobody; this is how an operator lays
 * a stale one to rest. What the code produces cannot be switched off here: a webhook unsubscribes from it instead.
 */
export async function setEventTypeActive(
  db: Database,
  eventType: EventTypeRecord,
  input: { isActived: boolean; isGenerated: boolean; now: Date },
): Promise<EventTypeRecord> {
  if (!input.isActived && input.isGenerated)
    throw new Problem(
      'conflict',
      `${eventType.internal} is produced by a route. Only stale and external event types can be deactivated.`,
    )
  return updateEventTypeActive(db, eventType.id, input.isActived, input.now)
}
