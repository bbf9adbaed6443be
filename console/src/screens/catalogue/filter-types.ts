import type { Schemas } from '@signalbox/client'

export type EventType = Schemas['EventType']

/** State of an event type: `stale` has no route any more, `inactive` reaches nobody. Pure. */
export function stateOf(
  { internal, is_actived }: EventType,
  stale: ReadonlySet<string>,
): 'active' | 'stale' | 'inactive' {
  if (!is_actived) return 'inactive'
  return stale.has(internal) ? 'stale' : 'active'
}

export interface CatalogueFilters {
  q?: string
  resource?: string
  state?: string
}

export const resourceOf = (internal: string) => internal.slice(0, internal.indexOf('.'))

/** The event types that match: by a part of the name, route or description, by resource, by state. Pure. */
export function filterTypes(
  types: readonly EventType[],
  { q = '', resource, state }: CatalogueFilters,
  stale: ReadonlySet<string>,
): EventType[] {
  const text = q.trim().toLowerCase()
  return types.filter(
    (type) =>
      (resource === undefined || resourceOf(type.internal) === resource) &&
      (state === undefined || stateOf(type, stale) === state) &&
      [type.internal, type.route, type.description].some((item) => item?.toLowerCase().includes(text)),
  )
}
