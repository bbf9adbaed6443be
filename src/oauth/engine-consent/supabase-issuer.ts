import type { SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { buildApiAudience, type TokenIssuer } from '../exchange/token-issuer.ts'
import type { IssuerKeys } from '../signing-key/issuer-keys.ts'

/** The `aud` that Supabase Auth gives to every access token unless the hook sets another one. */
const DEFAULT_AUDIENCE = 'authenticated'

/**
 * The issuer of Supabase Auth with its OAuth server. Its access tokens have no class of their own: an app's token is
 * one with a `client_id`, and an ID token has the client as its `aud`. It has no grants of its own in a token: the
 * session of the app there is the grant. That session is checked online, since nothing else reports its end or a ban of
 * the user.
 */
export function buildSupabaseIssuer(parts: {
  client: SupabaseClient
  /** `SUPABASE_ISSUER`. */
  issuer: string
  baseUrl: () => string
  keys: IssuerKeys
}): TokenIssuer {
  const { client, issuer, baseUrl, keys } = parts
  return {
    isOwn: false,
    isKept: false,
    issuer: () => issuer,
    audiences: () => [buildApiAudience(baseUrl()), DEFAULT_AUDIENCE],
    types: ['jwt', undefined],
    keys,
    grantClaim: 'session_id',
    scopeClaims: ['scope', 'api_scope'],
    askOnline: async (token) => {
      const answer = await client.readUser(token)
      if (answer.ok) return { isLiving: true }
      // The server is at fault, not the token.
      if (answer.status >= 500 || answer.status === 429) throw new Error(`Supabase Auth answered ${answer.code}`)
      return { isLiving: false, reason: `engine_${answer.code}` }
    },
  }
}
