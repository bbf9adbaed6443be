import { isDeepStrictEqual } from 'node:util'
import type { IdMaker } from '../../base/id.ts'
import { buildFieldProblem, invalidField, notFound, orNotFound, Problem } from '../../http/problem/problem.ts'
import type { AccountScope } from '../../http/route/route.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  describeEventType,
  type EventTypeRecord,
  type EventTypeText,
  findEventType,
  findEventTypesByName,
  insertExternalEventType,
  lockEventType,
  setActiveIfDifferent,
  setVisibleIfDifferent,
} from './catalogue.store.ts'

export { toEventTypeRow } from './catalogue.store.ts'

/** The event type with this id, or a 404. */
export async function loadEventType(db: Database, id: string): Promise<EventTypeRecord> {
  return orNotFound(await findEventType(db, { id }), 'event type')
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
): Promise<RowChange<EventTypeRecord>> {
  const changed = await setVisibleIfDifferent(db, { id, ...change })
  return changed ? { row: changed } : { row: await loadEventType(db, id), isChanged: false }
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
    group: string | null
    now: Date
  },
): Promise<EventTypeRecord> {
  const resource = input.internal.slice(0, input.internal.indexOf('.'))
  if (['webhook', 'webhook-event', 'webhook-dispatch'].includes(resource))
    throw invalidField('internal', 'reserved', `the resource ${resource} is the service's own; choose another name`)
  const inserted = await insertExternalEventType(db, { id: deps.ids.next(), ...input })
  if (inserted) return inserted
  const [taken] = await findEventTypesByName(db, { names: [input.internal] })
  const source = taken ? ` (source ${taken.source})` : ''
  throw new Problem('conflict', `The event type ${input.internal} already exists${source}.`)
}

/** Activates or deactivates an event type; those of the code (`generated`) stay active. Throws 404, 409. */
export async function setEventTypeActive(
  db: Database,
  id: string,
  input: { isActived: boolean; generated: readonly string[]; now: Date },
): Promise<RowChange<EventTypeRecord>> {
  const { isActived, generated, now } = input
  const changed = await setActiveIfDifferent(db, { id, isActived, kept: generated, now })
  if (changed) return { row: changed }
  const eventType = await loadEventType(db, id)
  if (!isActived && generated.includes(eventType.internal))
    throw new Problem(
      'conflict',
      `${eventType.internal} is produced by a route. Only stale and external event types can be deactivated.`,
    )
  return { row: eventType, isChanged: false }
}

/** Describes an external event type anew; undefined members stay. Throws 404, 409, 422. */
export async function changeEventType(
  db: Database,
  id: string,
  input: { [Name in keyof EventTypeText]?: EventTypeText[Name] | undefined } & { now: Date },
): Promise<RowChange<EventTypeRecord>> {
  const before = orNotFound(await lockEventType(db, { id }), 'event type')
  if (before.source !== 'external')
    throw new Problem('conflict', `${before.internal} is described by the service. Only external event types change.`)
  const { description, group, deprecatedAt, deprecationRemedy } = before
  const current: EventTypeText = { description, group, deprecatedAt, deprecationRemedy }
  const { now, ...given } = input
  const wanted = { ...current, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
  if ((wanted.deprecatedAt === null) !== (wanted.deprecationRemedy === null)) {
    const [path, other] =
      wanted.deprecatedAt === null
        ? (['deprecated_at', 'deprecation_remedy'] as const)
        : (['deprecation_remedy', 'deprecated_at'] as const)
    throw buildFieldProblem({
      path,
      code: 'required',
      message: `is required together with ${other}; set both, or both to null`,
      params: { other },
    })
  }
  if (isDeepStrictEqual(wanted, current)) return { row: before, before, isChanged: false }
  return { row: await describeEventType(db, before, wanted, now), before }
}
