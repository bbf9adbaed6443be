import { Problem } from '../problem/problem.ts'
import { permissionOf, type RouteDeclaration } from '../route/route.ts'
import { type Caller, isUnderCeiling, matchesPattern, type Narrowing } from '../shape/caller.ts'

/** The account that the token of a caller lacks, where it would hold the permission of a route; else undefined. Pure. */
export function findLackedAccount(route: RouteDeclaration, caller: Caller): Narrowing | undefined {
  const { narrowing } = caller
  if (!narrowing || narrowing.provenUntil !== null || route.ownAccounts !== true) return undefined
  const permission = permissionOf(route)
  const isHeld = narrowing.lacking.some((pattern) => matchesPattern(pattern, permission))
  return isHeld && isUnderCeiling(caller, permission) ? narrowing : undefined
}

/** The refusal of a call that reaches for it (docs/contract/connections.md#members-of-several-accounts). */
export function buildLackedRefusal({ account, enterPath }: Narrowing): Problem {
  const text =
    enterPath === null
      ? `The account ${account} is reached in sessions that its identity provider has proven. An API key reaches it when it is bound to it.`
      : `The account ${account} is reached after a sign-in by its identity provider in this session. Open the address in errors in the browser of the session.`
  return new Problem('connection_required', text, {
    ...(enterPath !== null && { errors: [{ path: 'connection', code: 'required', message: enterPath }] }),
    reason: 'session_unproven',
  })
}

/** The refusal in place of a 403 or 404 whose token lacks the account that the request names, else undefined. */
export function explainLackedAccount(
  route: RouteDeclaration,
  caller: Caller | undefined,
  { error, given }: { error: unknown; given: readonly unknown[] },
): Problem | undefined {
  if (!caller || !(error instanceof Problem) || !REFUSALS.has(error.code)) return undefined
  const lacked = findLackedAccount(route, caller)
  return lacked && given.some((values) => namesAccount(values, lacked.account)) ? buildLackedRefusal(lacked) : undefined
}

const REFUSALS: ReadonlySet<string> = new Set(['permission_denied', 'not_found'])

/** Whether one of the texts of a request, at its first level, holds the id of an account. */
function namesAccount(values: unknown, account: string): boolean {
  return Object.values(values ?? {}).some((value) => typeof value === 'string' && value.includes(account))
}
