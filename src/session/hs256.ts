import { createHmac, timingSafeEqual } from 'node:crypto'
import { hasAmbiguousKeys } from './json-keys.ts'

/** Limit of a token in characters. A handshake token, which contains another token, stays far below it. */
export const TOKEN_LENGTH_LIMIT = 8192

/** The claims of a token: a JSON object. */
export type Claims = Readonly<Record<string, unknown>>

/** The requirements of a verifier. */
export interface Hs256Policy {
  /** The accepted secrets. At least one. */
  secrets: readonly string[]
  /**
   * The accepted token classes: values of `typ` in lower case, and `undefined` for a token without `typ`. Others are
   * refused, so that a token of one purpose is not accepted for another (RFC 8725 section 3.11).
   */
  types: readonly (string | undefined)[]
  isAudience: (aud: string) => boolean
  isIssuer: (iss: string) => boolean
  now: Date
  /** Tolerance for clock skew. */
  leewaySeconds: number
  /** The longest accepted `exp - iat`. */
  maxLifetimeSeconds?: number
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
  | 'times'
  | 'expired'
  | 'not_yet_valid'
  | 'lifetime'

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

/** Stands for a signature that is missing or malformed, so that its MAC is computed and compared as any other. */
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
  const head = parseObject(header)
  const claims = parseObject(payload)
  if (typeof head === 'string') return refuse(head)
  if (typeof claims === 'string') return refuse(claims)
  return checkMeaning(head, claims, policy)
}

function refuse(reason: Hs256Refusal): { ok: false; reason: Hs256Refusal } {
  return { ok: false, reason }
}

/** The bytes of one segment; undefined when it is empty or not canonical base64url. */
function decodeSegment(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  // The unused bits of the last character must be zero; else the same bytes have several encodings.
  return bytes.toString('base64url') === text ? bytes : undefined
}

function isSignedByAny(signed: string, signature: Buffer, secrets: readonly string[]): boolean {
  const isWhole = signature.length === NO_SIGNATURE.length
  const compared = isWhole ? signature : NO_SIGNATURE
  return secrets.map((secret) => timingSafeEqual(computeMac(signed, secret), compared)).includes(true) && isWhole
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The JSON object in `bytes`, or the reason of a refusal. */
function parseObject(bytes: Buffer): Claims | 'json' | 'duplicate_key' {
  let text: string
  let value: unknown
  try {
    // A byte order mark stays in the text, so JSON.parse refuses it, as other parsers do.
    text = utf8.decode(bytes)
    value = JSON.parse(text)
  } catch {
    return 'json'
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'json'
  if (hasAmbiguousKeys(text)) return 'duplicate_key'
  return value as Claims
}

function checkMeaning(header: Claims, claims: Claims, policy: Hs256Policy): Hs256Result {
  if (read(header, 'alg') !== 'HS256') return refuse('algorithm')
  // No extension is implemented, so a header with a critical one is refused (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, 'crit')) return refuse('critical_header')
  const typ = read(header, 'typ')
  const type = typeof typ === 'string' ? typ.toLowerCase() : undefined
  if ((typ !== undefined && type === undefined) || !policy.types.includes(type)) return refuse('type')
  const iss = read(claims, 'iss')
  if (typeof iss !== 'string' || !policy.isIssuer(iss)) return refuse('issuer')
  const aud = read(claims, 'aud')
  if (typeof aud !== 'string' || !policy.isAudience(aud)) return refuse('audience')
  const times = checkTimes(claims, policy)
  if (typeof times === 'string') return refuse(times)
  return { ok: true, type, claims: { ...claims, iss, aud, ...times } }
}

function checkTimes(claims: Claims, policy: Hs256Policy): { iat: number; exp: number } | Hs256Refusal {
  const { iat, exp, nbf } = { iat: read(claims, 'iat'), exp: read(claims, 'exp'), nbf: read(claims, 'nbf') }
  if (!isSeconds(iat) || !isSeconds(exp) || exp <= iat || (nbf !== undefined && !isSeconds(nbf))) return 'times'
  const nowSeconds = policy.now.getTime() / 1000
  if (nowSeconds >= exp + policy.leewaySeconds) return 'expired'
  if (Math.max(iat, isSeconds(nbf) ? nbf : 0) > nowSeconds + policy.leewaySeconds) return 'not_yet_valid'
  if (policy.maxLifetimeSeconds !== undefined && exp - iat > policy.maxLifetimeSeconds) return 'lifetime'
  return { iat, exp }
}

/** An own member of the object, not one of its prototype. */
function read(object: Claims, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
