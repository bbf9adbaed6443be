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
  /** Heading that event types are listed under. */
  group?: string
}

export const resourceOf = (internal: string) => internal.slice(0, internal.indexOf('.'))

/** Headings that event types are listed under, in the order of the names. Pure. */
export const listGroups = (types: readonly EventType[]): string[] =>
  [...new Set(types.flatMap(({ group }) => group ?? []))].sort()

/** The event types that match: by a part of the name, route or description, by resource, by state, by group. Pure. */
export function filterTypes(
  types: readonly EventType[],
  { q = '', resource, state, group }: CatalogueFilters,
  stale: ReadonlySet<string>,
): EventType[] {
  const text = q.trim().toLowerCase()
  return types.filter(
    (type) =>
      (resource === undefined || resourceOf(type.internal) === resource) &&
      (state === undefined || stateOf(type, stale) === state) &&
      (group === undefined || type.group === group) &&
      [type.internal, type.route, type.description].some((item) => item?.toLowerCase().includes(text)),
  )
}

/** The event types by what they are listed under, then by resource. Pure. */
export function groupTypes(types: readonly EventType[]) {
  const keyOf = ({ group, internal }: EventType) => `${group ?? ''} ${internal.split('.')[0]}`
  const groups = [...Map.groupBy(types, keyOf)].sort(([a], [b]) => (a < b ? -1 : 1))
  return groups.map(([key, members]) => {
    const [group = '', resource = ''] = key.split(' ')
    return { group, resource, members }
  })
}
