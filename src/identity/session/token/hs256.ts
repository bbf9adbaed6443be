import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  type Claims,
  checkTimes,
  decodeSegment,
  parseClaims,
  readClaim,
  type TimesPolicy,
  type TimesRefusal,
  TOKEN_LENGTH_LIMIT,
} from './compact-jws.ts'

/** The requirements of a verifier. */
export interface Hs256Policy extends TimesPolicy {
  /** The accepted secrets. At least one. */
  secrets: readonly string[]
  /**
   * The accepted token classes: values of `typ` in lower case, and `undefined` for a token without `typ`. Others are
   * refused, so that a token of one purpose is not accepted for another (RFC 8725 section 3.11).
   */
  types: readonly (string | undefined)[]
  isAudience: (aud: string) => boolean
  isIssuer: (iss: string) => boolean
}

/** The reason of a refusal. For logs and the audit trail; not sent to the caller. */
export type Hs256Refusal =
  | 'size'
  | 'form'
  | 'signature'
  | 'json'
  | 'duplicate_key'
  | 'algorithm'
  | 'critical_header'
  | 'type'
  | 'issuer'
  | 'audience'
  | TimesRefusal

/** The claims of a valid token, or the reason of its refusal. `iss` and `aud` are strings, `iat` and `exp` integers. */
export type Hs256Result =
  | { ok: true; type: string | undefined; claims: Claims & { iss: string; aud: string; iat: number; exp: number } }
  | { ok: false; reason: Hs256Refusal }

function encodeSegment(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function computeMac(signed: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(signed).digest()
}

/** Signs `claims` as a compact JWS under HS256 (RFC 7515). `type` becomes `typ`. */
export function signHs256(claims: Claims, options: { secret: string; type: string }): string {
  const signed = `${encodeSegment({ alg: 'HS256', typ: options.type })}.${encodeSegment(claims)}`
  return `${signed}.${computeMac(signed, options.secret).toString('base64url')}`
}

/** Placeholder for a missing or malformed signature, so that its MAC is computed and compared like any other. */
const NO_SIGNATURE = Buffer.alloc(32)

/**
 * Verifies a compact JWS under HS256 and no other algorithm (docs/contract/sessions.md#session-jwt,
 * docs/contract/sso.md#handshake-token). Checks in this order: size, form, canonical encoding of the signature, signature
 * over the received text, and only then header and claims. Never throws. Ignores `kid` and tries every secret. Computes
 * one MAC for each secret whatever the text is, so that no refusal costs less.
 */
export function verifyHs256(token: string, policy: Hs256Policy): Hs256Result {
  const isOversized = token.length > TOKEN_LENGTH_LIMIT
  const parts = isOversized ? [] : token.split('.')
  const [header, payload, signature] = parts.map(decodeSegment)
  const signed = isOversized ? '' : token.slice(0, Math.max(0, token.lastIndexOf('.')))
  const isSigned = isSignedByAny(signed, signature ?? NO_SIGNATURE, policy.secrets)
  if (isOversized) return refuse('size')
  if (parts.length !== 3 || !header || !payload || !signature) return refuse('form')
  if (!isSigned) return refuse('signature')
  const head = parseClaims(header)
  const claims = parseClaims(payload)
  if (typeof head === 'string') return refuse(head)
  if (typeof claims === 'string') return refuse(claims)
  return checkMeaning(head, claims, policy)
}

function refuse(reason: Hs256Refusal): { ok: false; reason: Hs256Refusal } {
  return { ok: false, reason }
}

function isSignedByAny(signed: string, signature: Buffer, secrets: readonly string[]): boolean {
  const isWhole = signature.length === NO_SIGNATURE.length
  const compared = isWhole ? signature : NO_SIGNATURE
  return secrets.map((secret) => timingSafeEqual(computeMac(signed, secret), compared)).includes(true) && isWhole
}

function checkMeaning(header: Claims, claims: Claims, policy: Hs256Policy): Hs256Result {
  if (readClaim(header, 'alg') !== 'HS256') return refuse('algorithm')
  // No extension is implemented, so a header with a critical one is refused (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, 'crit')) return refuse('critical_header')
  const typ = readClaim(header, 'typ')
  const type = typeof typ === 'string' ? typ.toLowerCase() : undefined
  if ((typ !== undefined && type === undefined) || !policy.types.includes(type)) return refuse('type')
  const iss = readClaim(claims, 'iss')
  if (typeof iss !== 'string' || !policy.isIssuer(iss)) return refuse('issuer')
  const aud = readClaim(claims, 'aud')
  if (typeof aud !== 'string' || !policy.isAudience(aud)) return refuse('audience')
  const times = checkTimes(claims, policy)
  if (typeof times === 'string') return refuse(times)
  return { ok: true, type, claims: { ...claims, iss, aud, ...times } }
}
