import type { UserId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import { type Caller, findPermissionScope, isUnderCeiling } from '../../http/shape/caller.ts'

/**
 * Checks that a token may manage rows of its user. A session may manage the user's own; an API key needs the permission,
 * because a leaked narrow key could otherwise create a successor that does not expire. Throws 403.
 */
export function checkKeyMay(caller: Caller, permission: string): void {
  if (isUnderCeiling(caller, permission)) return
  const token = caller.clientId === null ? 'API key' : 'app'
  throw new Problem('permission_denied', `This ${token} does not hold ${permission}.`, {
    missing: { what: caller.clientId === null ? 'permission' : 'app_scope', permission },
  })
}

/** The user whose rows `caller` reaches on a route that `opensAll`: itself, or with the permission all. Throws 403. */
export function findOwners(caller: Caller, permission: string): UserId | 'all' {
  checkKeyMay(caller, permission)
  return findPermissionScope(caller, permission) === 'all' ? 'all' : caller.userId
}
