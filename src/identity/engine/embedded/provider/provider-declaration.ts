import type { ClientAuth, ServerMetadata } from 'openid-client'
import type { Clock } from '../../../../base/clock.ts'

/** The registration of this service at a provider. */
export interface ProviderClient {
  id: string
  /** Undefined for a public client, which proves itself by PKCE alone. */
  secret: string | undefined
  /** Apple's team and key, with which it signs its secret. */
  teamId?: string | undefined
  keyId?: string | undefined
}

/** Claims of a provider about a user: those of an ID token, the answer of its API. Unchecked. */
export type ProviderFacts = Readonly<Record<string, unknown>>

/** The profile that a declaration reads from the facts, before it is cleaned. */
export interface ReadProfile {
  /** Empty without a subject. */
  subject: unknown
  email: unknown
  isEmailVerified: boolean
  name: unknown
  avatarUrl: unknown
}

/** Reads one JSON resource of a provider's API with the user's access token. Rejects unless the status is 200. */
export type ReadResource = (url: string, query?: Record<string, string>) => Promise<unknown>

/** Protocol of a provider: OpenID Connect with discovery, or plain OAuth 2.0 and an API of its own. */
export type ProviderProtocol =
  | { kind: 'openid'; issuer: string }
  | {
      kind: 'oauth'
      /** `base` is the address in place of the public one: a self-hosted installation. */
      buildMetadata: (base: string | undefined) => ServerMetadata
      readFacts: (input: {
        read: ReadResource
        base: string | undefined
        client: ProviderClient
        accessToken: string
      }) => Promise<ProviderFacts>
    }

/** Settings of a provider (docs/contract/social-login.md#providers), a file each, listed in `built-in-providers.ts`. */
export interface ProviderDeclaration {
  label: string
  protocol: ProviderProtocol
  scope: string
  /** Parameters of the authorization request besides those of the protocol. */
  parameters?: Readonly<Record<string, string>>
  /** False where a `code_verifier` makes the provider refuse the exchange. */
  hasPkce?: false
  /** False where the provider leaves the nonce out of its ID token. */
  hasNonce?: false
  /** Client authentication at the token endpoint, if not by the plain secret. */
  buildClientAuth?: (client: ProviderClient, clock: Pick<Clock, 'now'>) => ClientAuth
  /** The settings besides `_CLIENT_ID` that the provider needs. */
  needs: readonly ('secret' | 'teamId' | 'keyId')[]
  readProfile: (facts: ProviderFacts) => ReadProfile
  /** A claim besides the address that is asked for at the userinfo endpoint when the ID token leaves it out. */
  groupsClaim?: string | undefined
  /** Reads the names of the groups of the user. Default: none. */
  readGroups?: (facts: ProviderFacts) => readonly string[]
  /** Longest age of an ID token, in seconds, by its `iat`. Default: that of its `exp` alone. */
  tokenAgeSeconds?: number
}

/** A provider with its registration, as the configuration enables it. */
export interface EnabledProvider {
  name: string
  declaration: ProviderDeclaration
  client: ProviderClient
  /** The issuer, or the address, in place of the declared one. A function, because the port may be chosen at start. */
  base?: () => string
  /** Whether an address that the provider calls verified counts as verified. */
  isEmailTrusted: boolean
  /** Answers the requests to this provider in place of the network: the development provider. */
  answer?: (url: string, options: { method: string; body: string }) => Promise<Response>
}

/** Whether a claim is true. Apple and LinkedIn send a string instead of the boolean; Microsoft sends 1. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 'true' || value === 1 || value === '1'
}

/** The profile of standard claims (OpenID Connect Core 1.0 section 5.1). */
export function readStandardClaims(facts: ProviderFacts): ReadProfile {
  return {
    subject: facts.sub,
    email: facts.email,
    isEmailVerified: isTrue(facts.email_verified),
    name: facts.name,
    avatarUrl: facts.picture,
  }
}

/** Members of an object of unknown shape; none for anything else. */
export function asFacts(value: unknown): ProviderFacts {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ProviderFacts) : {}
}
