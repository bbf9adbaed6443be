import type { Schemas } from '@signalbox/client'
import { escapeFilter } from '../../parts/filter-text.ts'
import type { StatusName } from '../../parts/status.tsx'

/** The filters of the list of users, as the URL holds them. */
export const USER_FILTERS = ['q', 'in', 'state', 'role', 'account', 'provider', 'seen', 'created'] as const

/**
 * `in`: `name` looks for the text in names, otherwise in addresses. `seen` and `created`: a range of `RANGES_MS` that ends now,
 * of the last sign-in and of the creation.
 */
export type UserFilters = Partial<Record<(typeof USER_FILTERS)[number], string>>

const DAY_MS = 86_400_000

/** Ranges of time that are offered, ms. */
const RANGES_MS: Readonly<Record<string, number>> = { '24h': DAY_MS, '7d': 7 * DAY_MS, '30d': 30 * DAY_MS }

const STATES: Readonly<Record<string, readonly string[]>> = {
  active: ['is_actived|eq|true', 'last_sign_in_at|null|false'],
  invited: ['is_actived|eq|true', 'last_sign_in_at|null|true'],
  disabled: ['is_actived|eq|false'],
}

/** The filters of the API for those of the URL. Pure. */
export function toUserFilters(filters: UserFilters, nowMs: number): string[] {
  const since = (field: string, range: string | undefined) => {
    const length = range === undefined ? undefined : RANGES_MS[range]
    return length === undefined ? [] : [`${field}|gte|${new Date(nowMs - length).toISOString()}`]
  }
  const equal = (['role', 'account', 'provider'] as const).flatMap((name) =>
    filters[name] ? [`${name}|eq|${escapeFilter(filters[name])}`] : [],
  )
  return [
    ...(filters.q ? [`${filters.in === 'name' ? 'name' : 'email'}|like|${escapeFilter(filters.q)}`] : []),
    ...(STATES[filters.state ?? ''] ?? []),
    ...equal,
    ...since('last_sign_in_at', filters.seen),
    ...since('created_at', filters.created),
  ]
}

/** The state of a user: `invited` has not signed in yet. Pure. */
export function userState({
  is_actived,
  last_sign_in_at,
}: Pick<Schemas['User'], 'is_actived' | 'last_sign_in_at'>): StatusName {
  if (!is_actived) return 'disabled'
  return last_sign_in_at === null ? 'invited' : 'active'
}
