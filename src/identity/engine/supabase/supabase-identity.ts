import { isStorableText } from '../../../base/stored-text.ts'
import { cleanName, cleanProfile } from '../embedded/clean-profile.ts'
import { asFacts, isTrue, type ProviderFacts } from '../embedded/provider/provider-declaration.ts'
import type { ProviderIdentity } from '../engine.ts'

/** Supabase Auth's names of providers, where they differ. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  linkedin: 'linkedin_oidc',
  microsoft: 'azure',
  slack: 'slack_oidc',
}

/** The providers that Supabase Auth knows by the same name. */
const SAME_NAMES: ReadonlySet<string> = new Set(
  'apple bitbucket discord facebook figma fly github gitlab google kakao keycloak notion snapchat spotify twitch x zoom'.split(
    ' ',
  ),
)

/** The name of a provider at Supabase Auth. An unknown one is a custom provider there. */
export function toEngineName(provider: string): string {
  return OTHER_NAMES[provider] ?? (SAME_NAMES.has(provider) ? provider : `custom:${provider}`)
}

/** Origin of a user's token. */
export interface TokenOrigin {
  provider: string
  /** Whether an address that the provider calls verified counts as verified. */
  isEmailTrusted: boolean
  /** Whether the sign-in is known to be at this provider: its code answers a flow that this service began there. */
  isProviderKnown: boolean
}

/** The reason for which a user of Supabase Auth has no identity at the provider. For the log. */
export type IdentityFault = 'NO_IDENTITY' | 'AMBIGUOUS_IDENTITY'

/**
 * Reads the identity of a Supabase Auth user at a provider (docs/contract/social-login.md#supabase-engine). The server
 * links identities of several providers in one user, also by unverified addresses, and its tokens name only the user.
 * If more than one identity is possible, all must be verified: then they belong to one user. `user_metadata`
 * is written by every provider and by the user itself, so only the identity's own data count. Pure.
 */
export function readSupabaseIdentity(user: ProviderFacts, origin: TokenOrigin): ProviderIdentity | IdentityFault {
  const { provider, isEmailTrusted, isProviderKnown } = origin
  const name = toEngineName(provider)
  const all = Array.isArray(user.identities) ? user.identities.map(asFacts) : []
  const own = all.filter((item) => item.provider === name)
  const possible = isProviderKnown ? own : all
  if (possible.length > 1 && !possible.every(isVerified)) return 'AMBIGUOUS_IDENTITY'
  const latest = own.toSorted((a, b) => readLastUse(b).localeCompare(readLastUse(a)))[0]
  if (!latest) return 'NO_IDENTITY'
  const data = asFacts(latest.identity_data)
  const profile = {
    subject: data.sub ?? latest.id,
    email: data.email,
    isEmailVerified: isVerified(latest),
    name: cleanName(asFacts(data.custom_claims).global_name) ?? cleanName(data.full_name) ?? data.name,
    avatarUrl: data.avatar_url ?? data.picture,
  }
  const identity = cleanProfile(provider, profile, isEmailTrusted)
  if (!identity) return 'NO_IDENTITY'
  return typeof user.id === 'string' && isStorableText(user.id) ? { ...identity, engineSubject: user.id } : identity
}

/**
 * Whether the provider has verified the address of an identity. Of Microsoft the server takes any address for verified when
 * `xms_edov` is missing, although the administrator of any tenant can write it.
 */
function isVerified(identity: ProviderFacts): boolean {
  const data = asFacts(identity.identity_data)
  if (data.email_verified !== true) return false
  return identity.provider !== 'azure' || isTrue(asFacts(data.custom_claims).xms_edov)
}

/** The time of the last sign-in with an identity: the server keeps `last_sign_in_at` as it was at the first one. */
function readLastUse({ updated_at: updated, last_sign_in_at: signedIn }: ProviderFacts): string {
  return (
    [updated, signedIn]
      .filter((item) => typeof item === 'string')
      .toSorted()
      .at(-1) ?? ''
  )
}
