import { FatalError } from '../../app/log/fatal.ts'
import { isObject } from './source/foreign.ts'

/** The name in a map that stands for an endpoint without a filter. */
const ALL = '*'

/** The map of `--events`: event types of this service by those of the source; none for one left out on purpose. */
export type EventMap = ReadonlyMap<string, readonly string[]>

/** The event types of a webhook, or the names of the source that nothing stands for. */
export type Resolution = { ok: true; events: string[] } | { ok: false; unknown: string[] }

/**
 * Reads the file of `--events`: `{ "invoice.paid": "contract.update", "a": ["b.create", "c.delete"], "d": null, "*": [...] }`.
 * `known` has the active event types. Throws a `FatalError` that names the entry.
 */
export function readEventMap(text: string, known: ReadonlySet<string>): EventMap {
  const file = parse(text)
  return new Map(Object.entries(file).map(([name, value]) => [name, readTypes(name, value, known)]))
}

function parse(text: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new FatalError('The file of --events is not JSON.')
  }
  if (!isObject(value))
    throw new FatalError('The file of --events must be an object, such as {"invoice.paid": "contract.update"}.')
  return value
}

function readTypes(name: string, value: unknown, known: ReadonlySet<string>): readonly string[] {
  if (value === null) return []
  const types: unknown[] = Array.isArray(value) ? value : [value]
  return types.map((type) => {
    if (typeof type !== 'string')
      throw new FatalError(`--events: ${name} must name an event type, a list of them, or null to leave it out.`)
    if (known.has(type)) return type
    throw new FatalError(
      `--events: ${name} names ${type}, which is not an active event type here. GET /api/v3/webhook/event lists them.`,
    )
  })
}

/** The event types here for those of an endpoint. A name that is the same here stands for itself. Pure. */
export function resolveEvents(
  eventTypes: readonly string[] | 'all',
  map: EventMap,
  known: ReadonlySet<string>,
): Resolution {
  const names = eventTypes === 'all' ? [ALL] : eventTypes
  const unknown = names.filter((name) => !map.has(name) && !known.has(name))
  if (unknown.length > 0) return { ok: false, unknown }
  return { ok: true, events: [...new Set(names.flatMap((name) => map.get(name) ?? [name]))] }
}

/** Whether the map leaves every event type of an endpoint out, by `null` or an empty list. Pure. */
export function isLeftOut(eventTypes: readonly string[] | 'all', map: EventMap): boolean {
  const names = eventTypes === 'all' ? [ALL] : eventTypes
  return names.length > 0 && names.every((name) => map.get(name)?.length === 0)
}
