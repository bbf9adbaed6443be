import type { Schemas } from '@signalbox/client'

/** Who is signed in. */
export type Session = Schemas['Session']

/** The user, and what it may do. */
export interface Access {
  session: Session
  /** Whether the user holds a permission, in at least one account. */
  may(permission: string): boolean
  /** Whether the user holds it for every account. */
  mayEverywhere(permission: string): boolean
}

/** Whether a pattern covers a permission: itself, `webhook:*` or `*:*`. */
function covers(pattern: string, permission: string): boolean {
  if (pattern === '*:*' || pattern === permission) return true
  return pattern.endsWith(':*') && permission.startsWith(pattern.slice(0, -1))
}

/** Builds what a session may do. Pure; the API decides again at each call. */
export function buildAccess(session: Session): Access {
  const { permissions, account_permissions, membership_permissions } = session
  const own = [...account_permissions, ...membership_permissions.flatMap((permission) => permission.permissions)]
  const mayEverywhere = (permission: string) => permissions.some((pattern) => covers(pattern, permission))
  return {
    session,
    mayEverywhere,
    may: (permission) => mayEverywhere(permission) || own.some((pattern) => covers(pattern, permission)),
  }
}
