import { type EventTypeId, isUuid } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import type { FieldError } from '../../http/problem/field-error.ts'
import { Problem } from '../../http/problem/problem.ts'

/** The error of a type that the caller cannot see. */
export const UNKNOWN = {
  code: 'unknown_event',
  message: 'is not an event type; GET /api/v3/webhook/event lists them',
} as const

/** The error of a new link to an inactive type. */
export function buildDeactivated({ internal }: Pick<EventTypeRecord, 'internal'>) {
  return { code: 'event_deactivated', message: `${internal} was deactivated by an operator` } as const
}

/** The ids and the names of the entries of an event set, each once (docs/contract/webhooks.md#event-set). */
export function splitEntries(entries: readonly string[]): { ids: string[]; names: string[] } {
  const all = [...new Set(entries)]
  return { ids: all.filter(isUuid), names: all.filter((item) => !isUuid(item)) }
}

/** Facts for the check of an entry. `isSubscribed`: the webhook already has it, so it may stay. */
export type KnownType = Pick<EventTypeRecord, 'id' | 'internal' | 'isActived'> & { isSubscribed: boolean }

/** The event types of the entries in order. Throws a 422 at `events.<index>` for unknown and newly deactivated ones. */
export function resolveEntries(entries: readonly string[], known: readonly KnownType[]): EventTypeId[] {
  const byEntry = new Map<string, KnownType>(
    known.flatMap((type) => [type.id, type.internal].map((key) => [key, type])),
  )
  const errors = entries.flatMap((entry, index): FieldError[] => {
    const type = byEntry.get(entry)
    const path = `events.${index}`
    if (!type) return [{ path, ...UNKNOWN }]
    return type.isActived || type.isSubscribed ? [] : [{ path, ...buildDeactivated(type) }]
  })
  const [first] = errors
  if (first) throw new Problem('validation_failed', `${first.path}: ${first.message}`, { errors })
  return entries.map((entry) => (byEntry.get(entry) as KnownType).id)
}
