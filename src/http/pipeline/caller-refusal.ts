import { type Missing, Problem } from '../problem/problem.ts'
import { buildNotFresh, isFresh } from '../request/freshness.ts'
import { permissionOf, type RouteDeclaration } from '../route/route.ts'
import { type Caller, findPermissionScope, isUnderCeiling, type PermissionScope } from '../shape/caller.ts'
import { buildLackedRefusal, findLackedAccount } from './lacked-account.ts'

/** The reason for which a caller may not use a route; undefined when it may. Pure. */
export function findCallerRefusal(
  route: RouteDeclaration,
  { caller, scope, now }: { caller: Caller; scope: PermissionScope | undefined; now: Date },
): Problem | undefined {
  if (!isOpen(route, caller, scope)) {
    const lacked = findLackedAccount(route, caller)
    return lacked ? buildLackedRefusal(lacked) : buildPermissionRefusal(route, caller, scope)
  }
  return route.fresh && !isFresh(caller, route.fresh, now) ? buildNotFresh(caller) : undefined
}

/**
 * Whether a route is open to `caller`. An app may use routes of its scopes, and a key of one account those of its
 * permissions there: no other route, even one open to every user.
 */
function isOpen(route: RouteDeclaration, caller: Caller, scope: PermissionScope | undefined): boolean {
  if (caller.clientId !== null && !isUnderCeiling(caller, permissionOf(route))) return false
  const isForUsers = route.access === 'caller' || route.access === 'public'
  if (isForUsers) return caller.keyAccount === null
  return scope === 'all' || (scope !== undefined && route.ownAccounts === true)
}

/** Checks a permission beside that of the route, which must hold for all accounts. Throws 403. */
export function checkHeldEverywhere(caller: Caller, permission: `${string}:${string}`): void {
  const scope = findPermissionScope(caller, permission)
  if (scope !== 'all') throw buildPermissionRefusal({ resource: '', action: '', permission }, caller, scope)
}

function buildPermissionRefusal(
  route: Pick<RouteDeclaration, 'resource' | 'action' | 'permission' | 'access'>,
  caller: Caller,
  scope: PermissionScope | undefined,
): Problem {
  const permission = permissionOf(route)
  if (caller.clientId !== null && !isUnderCeiling(caller, permission)) {
    const text = `This needs the permission ${permission}, which no scope of this app opens.`
    const missing = { what: 'app_scope' as const, permission }
    // RFC 6750 section 3.1.
    return new Problem('permission_denied', text, {
      missing,
      headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
    })
  }
  const isForUsers = route.access === 'caller' || route.access === 'public'
  if (scope === undefined && !isForUsers)
    return denied({ what: 'permission', permission }, `which your token does not hold.`)
  if (caller.keyAccount !== null)
    return denied(
      { what: 'scope', permission },
      `beyond the account ${caller.keyAccount}, to which this API key is bound.`,
    )
  return denied({ what: 'scope', permission }, 'for all accounts. Your token holds it for some accounts only.')
}

function denied(missing: Missing, rest: string): Problem {
  const joint = missing.what === 'permission' ? ',' : ''
  return new Problem('permission_denied', `This needs the permission ${missing.permission}${joint} ${rest}`, {
    missing,
  })
}

/** 403 for an operation on all accounts by a caller limited to some. `what` completes "... needs the permission". */
export function buildScopeMissing(what: string, permission: string): Problem {
  return new Problem('permission_denied', `${what} needs the permission ${permission} for all accounts.`, {
    missing: { what: 'scope', permission },
  })
}

/** 403 for an account that is outside the scope of the caller. Does not say whether there is such an account. */
export function buildAccountMissing(permission: string, account: string): Problem {
  return new Problem('permission_denied', `This needs the permission ${permission} for this account.`, {
    missing: { what: 'account', permission, account },
  })
}
