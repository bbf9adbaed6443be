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

/** The event type with this id, or a 404. A change locks it, so that two changes follow each other. */
export async function loadEventType(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<EventTypeRecord> {
  const eventType = await findEventType(db, id, options)
  if (!eventType) throw notFound('event type')
  return eventType
}

/**
 * Registers an event type that another service owns (docs/contract/events.md#publishing-from-outside). A name that is taken is a 409; `webhook` and
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
  const inserted = await insertExternalEventType(db, { id: deps.ids.next(), ...input })
  if (inserted) return inserted
  const [taken] = await findEventTypesByName(db, [input.internal])
  const source = taken ? ` (source ${taken.source})` : ''
  throw new Problem('conflict', `The event type ${input.internal} exists already${source}.`)
}

/**
 * Switches a locked event type off or on; undefined when it is so already. Off, it takes no new subscription and reaches nobody; this is how an operator lays
 * a stale one to rest. What the code produces cannot be switched off here: a webhook unsubscribes from it instead.
 */
export async function setEventTypeActive(
  db: Database,
  eventType: EventTypeRecord,
  input: { isActived: boolean; isGenerated: boolean; now: Date },
): Promise<EventTypeRecord | undefined> {
  if (!input.isActived && input.isGenerated)
    throw new Problem(
      'conflict',
      `${eventType.internal} is produced by a route. Only stale and external event types can be deactivated.`,
    )
  if (input.isActived === eventType.isActived) return undefined
  return updateEventTypeActive(db, eventType.id, input.isActived, input.now)
}
