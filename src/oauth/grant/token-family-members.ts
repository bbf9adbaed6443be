import type { Random } from '../../base/random.ts'
import { listClaimsOf } from '../claims/asked-claims.ts'
import type { GrantRecord } from './grant.store.ts'

/** Lifetime of a token family, in seconds: that of a session (docs/contract/sessions.md#refresh-tokens). */
export const FAMILY_SECONDS = 90 * 24 * 3600

/** The scopes of a grant in the provider's model. */
export interface GrantMembers {
  openid: { scope: string; claims: string[] }
  resources: Record<string, string>
  rejected: { openid: { scope: string; claims: string[] }; resources: Record<string, string> } | undefined
}

/** The members of the provider's model for a grant: each scope is one of OpenID Connect and one of the API. Pure. */
export function buildGrantMembers(
  { scopes, refusedScopes }: Pick<GrantRecord, 'scopes' | 'refusedScopes'>,
  apiResource: string,
): GrantMembers {
  const given = describe(scopes, apiResource)
  return { ...given, rejected: refusedScopes.length === 0 ? undefined : describe(refusedScopes, apiResource) }
}

function describe(scopes: readonly string[], apiResource: string) {
  const scope = scopes.join(' ')
  return { openid: { scope, claims: listClaimsOf(scopes) }, resources: { [apiResource]: scope } }
}

/** The unguessable part of a family id. */
export function createTokenFamilyPart(random: Random): string {
  return random.bytes(16).toString('base64url')
}
