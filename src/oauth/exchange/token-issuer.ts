import { Problem } from '../../http/problem/problem.ts'
import type { IssuerKeys } from '../signing-key/issuer-keys.ts'

/** Answer of an issuer about the user of one of its tokens. */
export type OnlineAnswer = { isLiving: true } | { isLiving: false; reason: string }

/** 503 without an answer of the engine. */
export function buildEngineAway(cause: unknown): Problem {
  const detail = 'The identity engine does not answer. Try again in some seconds.'
  return new Problem('dependency_unavailable', detail, { cause, headers: { 'retry-after': '5' } })
}

/** An issuer of exchanged tokens (docs/contract/oauth-exchange.md#exchange): the own provider, or the engine. */
export interface TokenIssuer {
  /** Whether it is the service's own provider. Its subjects are the ids of users; those of another engine are its own. */
  isOwn: boolean
  /** Whether the database keeps its clients, grants and tokens, which are then looked up (`provider_token_fault`). */
  isKept: boolean
  /** The `iss` of its tokens. */
  issuer: () => string
  /** The accepted `aud` of an access token for the API. */
  audiences: () => readonly string[]
  /** The accepted `typ` in lower case, without `application/`; undefined for a token without one. */
  types: readonly (string | undefined)[]
  keys: IssuerKeys
  /** The claims that name the grant, and the scopes. */
  grantClaim: string
  scopeClaims: readonly string[]
  /** Checks the session of a token at the issuer, unless the database has it. Rejects without an answer. */
  askOnline?: (token: string) => Promise<OnlineAnswer>
}

/** The `aud` of access tokens for the API, and its identifier as a resource (RFC 8707; docs/contract/oauth.md#access-token). */
export function buildApiAudience(baseUrl: string): string {
  return `${baseUrl}/api/v3`
}

/** The issuer of the service's own provider: JWT access tokens by RFC 9068. */
export function buildOwnIssuer(parts: { baseUrl: () => string; keys: IssuerKeys; isKept: boolean }): TokenIssuer {
  const { baseUrl, keys, isKept } = parts
  return {
    isOwn: true,
    isKept,
    issuer: () => `${baseUrl()}/api/v3/oauth`,
    audiences: () => [buildApiAudience(baseUrl())],
    types: ['at+jwt'],
    keys,
    grantClaim: 'grant_id',
    scopeClaims: ['scope'],
  }
}
