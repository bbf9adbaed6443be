import { CLAIMS_OF_SCOPES } from './account-claims.ts'

/** The classes of a sign-in (docs/contract/sessions.md#how-a-user-signed-in). */
export const ACR_VALUES = ['aal1', 'aal2'] as const

/** One request for a claim (OpenID Connect Core section 5.5.1); null is one without conditions. */
type ClaimRequest = null | { essential?: unknown; value?: unknown; values?: unknown }

/** The parameter `claims`: the requested claims of the ID token and of userinfo. */
export interface AskedClaims {
  id_token?: Record<string, ClaimRequest>
  userinfo?: Record<string, ClaimRequest>
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The parameter `claims` of a request that the provider has accepted; empty for any other value. Pure. */
export function readAskedClaims(text: unknown): AskedClaims {
  if (typeof text !== 'string') return {}
  try {
    const read: unknown = JSON.parse(text)
    return isObject(read) ? (read as AskedClaims) : {}
  } catch {
    return {}
  }
}

/** Each claim about a user, with the scope that opens it. */
const SCOPE_OF_CLAIM = new Map(
  Object.entries(CLAIMS_OF_SCOPES).flatMap(([scope, claims]) => claims.map((claim) => [claim, scope] as const)),
)

/** The claims that these scopes open, in the order of the catalogue. Pure. */
export function listClaimsOf(scopes: readonly string[]): string[] {
  return [...SCOPE_OF_CLAIM].filter(([, scope]) => scopes.includes(scope)).map(([claim]) => claim)
}

/** The scopes that open the requested claims: the user grants a claim by its scope. Pure. */
export function listScopesOfClaims(text: unknown): string[] {
  const { id_token: idToken, userinfo } = readAskedClaims(text)
  const names = [idToken, userinfo].flatMap((asked) => (isObject(asked) ? Object.keys(asked) : []))
  return [...new Set(names.flatMap((name) => SCOPE_OF_CLAIM.get(name) ?? []))].filter((scope) => scope !== 'openid')
}

/** Parameter `claims` without claims that no scope of the client opens (OpenID Connect Core section 5.5.1). Pure. */
export function limitAskedClaims(claims: AskedClaims, scopes: readonly string[]): AskedClaims {
  const isOpen = ([name]: [string, unknown]) => ['openid', undefined, ...scopes].includes(SCOPE_OF_CLAIM.get(name))
  const keep = (asked: Record<string, ClaimRequest>) => Object.fromEntries(Object.entries(asked).filter(isOpen))
  return {
    ...(claims.id_token && { id_token: keep(claims.id_token) }),
    ...(claims.userinfo && { userinfo: keep(claims.userinfo) }),
  }
}

/** The classes of a sign-in that the request accepts; undefined when it accepts any. Pure. */
export function findNeededAcrs(claims: AskedClaims): readonly unknown[] | undefined {
  const asked = isObject(claims.id_token) ? claims.id_token.acr : undefined
  if (!isObject(asked) || asked.essential !== true) return undefined
  if (Array.isArray(asked.values)) return asked.values
  return asked.value === undefined ? undefined : [asked.value]
}

/** Whether the parameter `claims` accepts a sign-in of this class. Pure. */
export function isNeededAcr(text: unknown, acr: string | null): boolean {
  const needed = findNeededAcrs(readAskedClaims(text))
  return needed === undefined || needed.includes(acr)
}
