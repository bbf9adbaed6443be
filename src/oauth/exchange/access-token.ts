import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isUuid } from '../../base/id.ts'
import {
  type Claims,
  checkTimes,
  decodeSegment,
  isSeconds,
  parseClaims,
  readClaim,
  type TimesRefusal,
  TOKEN_LENGTH_LIMIT,
} from '../../identity/session/token/compact-jws.ts'
import { KID_LENGTH_LIMIT } from '../signing-key/issuer-keys.ts'
import type { TokenIssuer } from './token-issuer.ts'

/** Tolerance for clock skew between the issuer and this process. */
export const LEEWAY_SECONDS = 5

/** The longest accepted `exp - iat`. The service's own provider issues for 15 minutes. */
const TOKEN_LIFETIME_SECONDS = 24 * 3600

/** Limits of claims, in characters. */
const NAME_LENGTH_LIMIT = 255
const SCOPE_LENGTH_LIMIT = 2048

/** Maximum number of sign-in methods read from a token. */
const AMR_LIMIT = 32

/** The reason of a refusal. For the log and the audit trail; not sent to the caller. */
export type TokenRefusal =
  | 'size'
  | 'form'
  | 'json'
  | 'duplicate_key'
  | 'algorithm'
  | 'critical_header'
  | 'key_in_header'
  | 'type'
  | 'key_id'
  | 'issuer'
  | 'key_unknown'
  | 'signature'
  | 'audience'
  | TimesRefusal
  | 'subject'
  | 'client'
  | 'scope'
  | 'grant'
  | 'bound_token'

/** Claims of a genuine access token. Its grant may be revoked: the database decides, or the engine. */
export interface AccessToken {
  /** Facts of the issuer: whether `subject` is a local user, and whether the database stores the token. */
  isOwn: boolean
  isKept: boolean
  subject: string
  clientId: string
  scope: string
  /** Null when the issuer names none. */
  grantId: string | null
  tokenId: string | null
  /** Time of the user's authentication, if in the token. */
  authTime: Date | null
  /** Start of its session, if in the token; a refresh of the token does not change it. */
  beganAt: Date
  expiresAt: Date
}

/** A genuine token with its issuer, or the reason of a refusal. */
export type AccessTokenResult =
  | { ok: true; token: AccessToken; issuer: TokenIssuer }
  | { ok: false; reason: TokenRefusal }

/** A signature with its key (RFC 7515 appendix A.3), verified so that early refusals cost the same. */
const STAND_IN = {
  token:
    'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q',
  jwk: {
    kty: 'EC',
    crv: 'P-256',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  },
} as const

const standInKey = createPublicKey({ key: STAND_IN.jwk, format: 'jwk' })

/**
 * Verifies an access token of one of `issuers` (docs/contract/oauth-exchange.md#exchange-checks). The order is: size,
 * form, header, issuer, key, signature, and only then the claims: audience, times, subject, client, scope, grant,
 * binding. Verifies exactly one signature for every text. Never rejects.
 */
export async function verifyAccessToken(
  issuers: readonly TokenIssuer[],
  token: string,
  now: Date,
): Promise<AccessTokenResult> {
  const opened = await openToken(issuers, token)
  if (typeof opened === 'string') {
    isSigned(STAND_IN.token, standInKey)
    return { ok: false, reason: opened }
  }
  const { claims, issuer, key } = opened
  if (!isSigned(token, key)) return { ok: false, reason: 'signature' }
  const read = readToken(claims, issuer, now)
  return typeof read === 'string' ? { ok: false, reason: read } : { ok: true, token: read, issuer }
}

/** Whether a compact JWS is signed by ES256 (RFC 7518 section 3.4) under the key, whatever its header names. */
function isSigned(token: string, key: KeyObject): boolean {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  return verify('sha256', Buffer.from(token.slice(0, end)), { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** The claims of a token, whose signature is not verified yet, with the key that has to verify it. */
async function openToken(
  issuers: readonly TokenIssuer[],
  token: string,
): Promise<{ claims: Claims; issuer: TokenIssuer; key: KeyObject } | TokenRefusal> {
  if (token.length > TOKEN_LENGTH_LIMIT) return 'size'
  const [first, second, third, ...more] = token.split('.').map(decodeSegment)
  if (!first || !second || third?.length !== SIGNATURE_BYTES || more.length > 0) return 'form'
  const header = parseClaims(first)
  if (typeof header === 'string') return header
  const claims = parseClaims(second)
  if (typeof claims === 'string') return claims
  const kid = readKeyId(header)
  if (!kid.ok) return kid.reason
  const issuer = issuers.find((issuer) => issuer.issuer() === readClaim(claims, 'iss'))
  if (!issuer) return 'issuer'
  if (!issuer.types.includes(readType(header))) return 'type'
  const key = await issuer.keys.find(kid.id)
  return key ? { claims, issuer, key } : 'key_unknown'
}

/** Bytes of an ES256 signature (RFC 7518 section 3.4). */
const SIGNATURE_BYTES = 64

/** Members with which a header names a key of its own (RFC 7515 section 4.1). They are never followed. */
const KEY_MEMBERS = ['jwk', 'jku', 'x5c', 'x5u', 'x5t', 'x5t#S256']

function readKeyId(header: Claims): { ok: true; id: string } | { ok: false; reason: TokenRefusal } {
  if (readClaim(header, 'alg') !== 'ES256') return { ok: false, reason: 'algorithm' }
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return { ok: false, reason: 'critical_header' }
  if (KEY_MEMBERS.some((name) => Object.hasOwn(header, name))) return { ok: false, reason: 'key_in_header' }
  const id = readClaim(header, 'kid')
  if (typeof id !== 'string' || id === '' || id.length > KID_LENGTH_LIMIT) return { ok: false, reason: 'key_id' }
  return { ok: true, id }
}

/** The class of a token (RFC 7515 section 4.1.9); no issuer accepts one that is not a text. */
function readType(header: Claims): string | undefined {
  const type = readClaim(header, 'typ')
  if (type === undefined) return undefined
  return typeof type === 'string' ? type.toLowerCase().replace(/^application\//, '') : 'not a text'
}

function readToken(claims: Claims, issuer: TokenIssuer, now: Date): AccessToken | TokenRefusal {
  if (!isForAudience(readClaim(claims, 'aud'), issuer.audiences())) return 'audience'
  const times = checkTimes(claims, { now, leewaySeconds: LEEWAY_SECONDS, maxLifetimeSeconds: TOKEN_LIFETIME_SECONDS })
  if (typeof times === 'string') return times
  const subject = readClaim(claims, 'sub')
  if (typeof subject !== 'string' || !isUuid(subject)) return 'subject'
  const clientId = readClaim(claims, 'client_id')
  const party = readClaim(claims, 'azp')
  if (!isName(clientId) || (party !== undefined && party !== clientId)) return 'client'
  const scopes = issuer.scopeClaims.map((name) => readClaim(claims, name) ?? '')
  if (!scopes.every((scope) => typeof scope === 'string' && scope.length <= SCOPE_LENGTH_LIMIT)) return 'scope'
  const [grantId, tokenId] = [readClaim(claims, issuer.grantClaim), readClaim(claims, 'jti')]
  if (!isOptionalName(grantId) || !isOptionalName(tokenId)) return 'grant'
  // A token bound to a key (RFC 9449) is useless without the key.
  if (Object.hasOwn(claims, 'cnf')) return 'bound_token'
  const authTime = readClaim(claims, 'auth_time')
  return {
    isOwn: issuer.isOwn,
    isKept: issuer.isKept,
    subject,
    clientId,
    scope: scopes.join(' ').trim(),
    grantId: grantId ?? null,
    tokenId: tokenId ?? null,
    authTime: isSeconds(authTime) ? new Date(authTime * 1000) : null,
    beganAt: new Date((readBeginning(claims) ?? times.iat) * 1000),
    expiresAt: new Date(times.exp * 1000),
  }
}

/** Start of the session of a managed engine's token, in seconds since 1970: its latest sign-in, of `amr`. Pure. */
export function readBeginning(claims: Readonly<Record<string, unknown>>): number | undefined {
  const amr = readClaim(claims, 'amr')
  const times = (Array.isArray(amr) ? amr.slice(0, AMR_LIMIT) : []).map(
    (item) => (item as { timestamp?: unknown } | null)?.timestamp,
  )
  const seconds = times.filter((time) => isSeconds(time))
  return seconds.length > 0 ? Math.max(...seconds) : undefined
}

/** Whether every audience is accepted: another service in the audience could have forwarded the token. */
function isForAudience(aud: unknown, accepted: readonly string[]): boolean {
  const named = Array.isArray(aud) ? aud : [aud]
  return named.length > 0 && named.every((name) => typeof name === 'string' && accepted.includes(name))
}

/** Printable ASCII without spaces, as RFC 6749 appendix A.1 writes a client id. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= NAME_LENGTH_LIMIT && /^[\x21-\x7e]+$/.test(value)
}

function isOptionalName(value: unknown): value is string | undefined {
  return value === undefined || isName(value)
}
