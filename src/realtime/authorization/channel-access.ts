import { type Caller, findPermissionScope, type PermissionScope } from '../../http/shape/caller.ts'

/** The permission that authorizes private channels. */
export const AUTH_PERMISSION = 'realtime:auth'

/** Permission of an administrator (docs/contract/identity.md#system-roles). */
const EVERYTHING = '*:*'

/** The accounts whose channels a caller may join (docs/contract/realtime.md#who-may-subscribe). Pure. */
export function listJoinable(caller: Caller): PermissionScope {
  const scope = findPermissionScope(caller, AUTH_PERMISSION) ?? []
  if (scope !== 'all') return scope.filter((account) => caller.accounts.includes(account))
  return caller.patterns.includes(EVERYTHING) ? 'all' : caller.accounts
}
