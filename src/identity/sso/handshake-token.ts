import type { SessionId, UserId } from '../../base/id.ts'
import { readClaim } from '../session/token/compact-jws.ts'
import { type Hs256Policy, type Hs256Refusal, signHs256, verifyHs256 } from '../session/token/hs256.ts'
import { isId, isOwnIssuer, type SessionKeys, verifySessionToken } from '../session/token/session-token.ts'
import { readNextPath } from './next-path.ts'
import { isTarget, type OwnSite, type TargetRules } from './target.ts'

/** Lifetime of a handshake token, and maximum accepted lifetime (docs/contract/sso.md#handshake-token). */
export const HANDSHAKE_SECONDS = 60

/** Tolerance for clock skew between issuers and this process. */
export const LEEWAY_SECONDS = 5

/** The class of a handshake token that the service mints, and of the carrier inside it. Values of `typ`. */
const HANDSHAKE_TYPE = 'sso+jwt'
const CARRIER_TYPE = 'sso-inner+jwt'

/** The classes of the tokens of other issuers: none, or what most libraries write by themselves (RFC 7519 section 5.1). */
const FOREIGN_TYPES = [undefined, 'jwt']

const CARRIER_AUDIENCE = 'sso-exchange'

const NONCE_BYTES = 24

/** Bounds of a nonce in characters: 22 of base64url hold 128 bits. */
const NONCE_LENGTHS = { min: 22, max: 255 }

/** The settings of handshakes. */
export interface HandshakeRules extends TargetRules, OwnSite {
  /** `SSO_HANDSHAKE_SECRET`: the first signs, all verify. */
  secrets: readonly string[]
  /** `SSO_HANDSHAKE_ISSUER`, or the base URL. */
  issuer: () => string
  /** `SSO_ACCEPT_SESSION_JWT`: whether a token of another issuer may carry an ordinary session JWT. */
  acceptSessionJwt: boolean
}

/** Input of a handshake token. */
export interface NewHandshake {
  userId: UserId
  sessionId: SessionId
  audience: string
  next: string | null
  issuedAt: Date
  expiresAt: Date
  nonce: string
}

/** The text of a new nonce. */
export function encodeNonce(random: { bytes(length: number): Buffer }): string {
  return random.bytes(NONCE_BYTES).toString('base64url')
}

/** Signs a handshake token with a carrier inside (docs/contract/sso.md#handshake-token). Times are cut to seconds. */
export function signHandshake({ secrets, issuer }: HandshakeRules, handshake: NewHandshake): string {
  const [secret] = secrets
  if (secret === undefined) throw new Error('handshake tokens need at least one secret')
  const times = {
    iat: Math.floor(handshake.issuedAt.getTime() / 1000),
    exp: Math.floor(handshake.expiresAt.getTime() / 1000),
  }
  const iss = issuer()
  const jwt = signHs256(
    { iss, aud: CARRIER_AUDIENCE, sub: handshake.userId, sid: handshake.sessionId, ...times },
    { secret, type: CARRIER_TYPE },
  )
  const { audience: aud, nonce, next } = handshake
  return signHs256({ iss, aud, jwt, nonce, ...(next !== null && { next }), ...times }, { secret, type: HANDSHAKE_TYPE })
}

/** The reason of a refused token. For the log and the audit trail; not sent to the caller. */
export type HandshakeRefusal =
  | Hs256Refusal
  | 'nonce'
  | 'next'
  | 'inner_missing'
  | `inner_${Hs256Refusal | 'claims'}`
  | 'origin'

/** Claims of a valid handshake token. Its session may be revoked: the database decides. */
export interface Handshake {
  userId: UserId
  sessionId: SessionId
  audience: string
  nonce: string
  next: string | null
  expiresAt: Date
}

/** A valid token, or the reason of its refusal. */
export type HandshakeResult = { ok: true; handshake: Handshake } | { ok: false; reason: HandshakeRefusal }

type InnerResult = { ok: true; userId: UserId; sessionId: SessionId } | { ok: false; reason: Hs256Refusal | 'claims' }

/**
 * Verifies a handshake token and the token inside it (docs/contract/sso.md#exchange-checks). A token of the class `sso+jwt`
 * has a carrier inside; one without a class or of the class `JWT`, while the rules accept it, an ordinary session JWT. `appOrigin` is the origin
 * that the exchange came from, if it named one. Computes the same number of MACs for every text. Never throws.
 */
export function verifyHandshake(
  keys: { rules: HandshakeRules; session: SessionKeys },
  token: string,
  { appOrigin, now }: { appOrigin: string | null; now: Date },
): HandshakeResult {
  const { rules } = keys
  const outer = verifyHs256(token, {
    ...buildPolicy(rules, now),
    types: rules.acceptSessionJwt ? [HANDSHAKE_TYPE, ...FOREIGN_TYPES] : [HANDSHAKE_TYPE],
    isAudience: (aud) => isTarget(aud, rules),
  })
  const jwt = outer.ok ? readClaim(outer.claims, 'jwt') : undefined
  const text = typeof jwt === 'string' ? jwt : ''
  // Both are always verified, so that the time reveals nothing about the token.
  const inner = { carrier: verifyCarrier(rules, text, now), session: verifySession(keys.session, text, now) }
  if (!outer.ok) return outer
  if (typeof jwt !== 'string') return refuse('inner_missing')
  const found = outer.type === HANDSHAKE_TYPE ? inner.carrier : inner.session
  if (!found.ok) return refuse(`inner_${found.reason}`)
  const nonce = readClaim(outer.claims, 'nonce')
  if (!isNonce(nonce)) return refuse('nonce')
  const given = readClaim(outer.claims, 'next')
  const next = readNextPath(given)
  if (given !== undefined && next === null) return refuse('next')
  const { aud: audience, exp } = outer.claims
  if (appOrigin !== null && appOrigin !== audience) return refuse('origin')
  const { userId, sessionId } = found
  return { ok: true, handshake: { userId, sessionId, audience, nonce, next, expiresAt: new Date(exp * 1000) } }
}

function refuse(reason: HandshakeRefusal): { ok: false; reason: HandshakeRefusal } {
  return { ok: false, reason }
}

function buildPolicy({ secrets, issuer }: HandshakeRules, now: Date): Omit<Hs256Policy, 'types' | 'isAudience'> {
  const isIssuer = (iss: string) => isOwnIssuer(iss, issuer())
  return { secrets, isIssuer, now, leewaySeconds: LEEWAY_SECONDS, maxLifetimeSeconds: HANDSHAKE_SECONDS }
}

function verifyCarrier(rules: HandshakeRules, token: string, now: Date): InnerResult {
  const result = verifyHs256(token, {
    ...buildPolicy(rules, now),
    types: [CARRIER_TYPE],
    isAudience: (aud) => aud === CARRIER_AUDIENCE,
  })
  if (!result.ok) return result
  const [sub, sid] = [readClaim(result.claims, 'sub'), readClaim(result.claims, 'sid')]
  if (!isId(sub) || !isId(sid)) return { ok: false, reason: 'claims' }
  return { ok: true, userId: sub as UserId, sessionId: sid as SessionId }
}

function verifySession(keys: SessionKeys, token: string, now: Date): InnerResult {
  const result = verifySessionToken(keys, token, now)
  return result.ok ? { ok: true, userId: result.claims.userId, sessionId: result.claims.sessionId } : result
}

function isNonce(value: unknown): value is string {
  return typeof value === 'string' && value.length >= NONCE_LENGTHS.min && value.length <= NONCE_LENGTHS.max
}
