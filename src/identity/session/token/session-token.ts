import type { AccountId, SessionId, UserId } from '../../../base/id.ts'
import { isUuid } from '../../../base/id.ts'
import { LAST_INSTANT } from '../../../http/shape/instant.ts'
import { type Hs256Refusal, signHs256, verifyHs256 } from './hs256.ts'

/** The `aud` of every session JWT. A fixed word, independent of the base URL. */
const SESSION_AUDIENCE = 'signalbox'

/** Lifetime of a session JWT (docs/contract/sessions.md#session-jwt). */
export const SESSION_JWT_SECONDS = 3600

/** Tolerance for clock skew between processes, as for the handshake (docs/contract/sso.md#handshake-token). */
const LEEWAY_SECONDS = 5

/** Dependencies of signing and verifying session JWTs. */
export interface SessionKeys {
  /** `SESSION_JWT_SECRET`: the first signs, all verify. */
  secrets: readonly string[]
  /** `BASE_URL`; a function, because the port may be chosen at start. */
  issuer: () => string
}

/** The claims of a session JWT (docs/contract/sessions.md#session-jwt). */
export interface SessionClaims {
  userId: UserId
  sessionId: SessionId
  /** The current account at the time of issue. Requests use the session's row, which is newer. */
  accountId: AccountId | null
  tokenId: string
  issuedAt: Date
  expiresAt: Date
}

/** Way and time of the sign-in (docs/contract/sessions.md#how-a-user-signed-in), for readers of the token. */
export interface SignInFacts {
  amr: readonly string[]
  acr: string | null
  authTime: Date
}

/** The app that a token is for. For readers of the token: requests use the row. */
export interface TokenClient {
  client?: { id: string; scope: string; grantId: string | null } | null
}

/** Signs a session JWT with the claims of docs/contract/sessions.md#session-jwt. Times are cut to seconds. */
export function signSessionToken(keys: SessionKeys, claims: SessionClaims & SignInFacts & TokenClient): string {
  const [secret] = keys.secrets
  if (secret === undefined) throw new Error('session tokens need at least one secret')
  return signHs256(
    {
      iss: keys.issuer(),
      aud: SESSION_AUDIENCE,
      sub: claims.userId,
      sid: claims.sessionId,
      account: claims.accountId,
      iat: Math.floor(claims.issuedAt.getTime() / 1000),
      exp: Math.floor(claims.expiresAt.getTime() / 1000),
      jti: claims.tokenId,
      amr: claims.amr,
      acr: claims.acr,
      auth_time: Math.floor(claims.authTime.getTime() / 1000),
      ...(claims.client && {
        client_id: claims.client.id,
        scope: claims.client.scope,
        ...(claims.client.grantId !== null && { grant_id: claims.client.grantId }),
      }),
    },
    { secret, type: 'JWT' },
  )
}

/** The claims of a JWT with a valid signature and lifetime. The session may be revoked: the database decides. */
export type SessionTokenResult = { ok: true; claims: SessionClaims } | { ok: false; reason: Hs256Refusal | 'claims' }

/**
 * Verifies a session JWT: HS256, class `JWT` or none, our issuer and audience, times up to the year
 * 9999 with 5 s of leeway, well-formed ids.
 * A handshake (`sso+jwt`), its carrier (`sso-inner+jwt`) and an OAuth access token (`at+jwt`) are refused by class. Never throws.
 */
export function verifySessionToken(keys: SessionKeys, token: string, now: Date): SessionTokenResult {
  const result = verifyHs256(token, {
    secrets: keys.secrets,
    types: ['jwt', undefined],
    isAudience: (aud) => aud === SESSION_AUDIENCE,
    isIssuer: (iss) => isOwnIssuer(iss, keys.issuer()),
    now,
    leewaySeconds: LEEWAY_SECONDS,
  })
  if (!result.ok) return result
  const { sub, sid, account, jti, iat, exp } = result.claims
  const isWellFormed =
    isId(sub) &&
    isId(sid) &&
    typeof jti === 'string' &&
    jti.length <= 255 &&
    (account === null || isId(account)) &&
    exp * 1000 <= LAST_INSTANT.getTime()
  if (!isWellFormed) return { ok: false, reason: 'claims' }
  const claims = {
    userId: sub as UserId,
    sessionId: sid as SessionId,
    accountId: account as AccountId | null,
    tokenId: jti,
    issuedAt: new Date(iat * 1000),
    expiresAt: new Date(exp * 1000),
  }
  return { ok: true, claims }
}

/** Whether a claim is the id of a row. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && isUuid(value)
}

const LOCALHOST_PATTERN = /^http:\/\/localhost:\d{1,5}$/

/**
 * Whether `iss` is this service: exactly its base URL. With the default `http://localhost:<port>`, any port: processes of
 * one machine share database and secrets but not the port (docs/contract/configuration.md#reader).
 */
export function isOwnIssuer(iss: string, baseUrl: string): boolean {
  return iss === baseUrl || (LOCALHOST_PATTERN.test(iss) && LOCALHOST_PATTERN.test(baseUrl))
}
