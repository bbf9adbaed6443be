import { hasAmbiguousKeys } from './json-keys.ts'

/** Limit of a token in characters. A handshake token, which contains another token, stays far below it. */
export const TOKEN_LENGTH_LIMIT = 8192

/** The claims of a token, or the members of its header: a JSON object. */
export type Claims = Readonly<Record<string, unknown>>

/** The bytes of a segment of a compact JWS (RFC 7515 section 3.1); undefined when it is empty or not canonical base64url. */
export function decodeSegment(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  // The unused bits of the last character must be zero; else the same bytes have several encodings.
  return bytes.toString('base64url') === text ? bytes : undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The JSON object in `bytes`, or the reason of a refusal. */
export function parseClaims(bytes: Buffer): Claims | 'json' | 'duplicate_key' {
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
  return hasAmbiguousKeys(text) ? 'duplicate_key' : (value as Claims)
}

/** An own member of the object, not one of its prototype. */
export function readClaim(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined
}

/** The latest second of the year 9999, the last that the database and JSON dates share. */
const LAST_SECOND = 253_402_300_799

/** Whether a claim is a time in seconds (RFC 7519 section 2, `NumericDate`) that the service can store. */
export function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND
}

/** The requirements of `checkTimes`. */
export interface TimesPolicy {
  now: Date
  /** Tolerance for clock skew. */
  leewaySeconds: number
  /** The longest accepted `exp - iat`. */
  maxLifetimeSeconds?: number
}

/** Reason of refused token times. */
export type TimesRefusal = 'times' | 'expired' | 'not_yet_valid' | 'lifetime'

/** The times of a token that is valid now, `iat` and `exp` in seconds, or the reason of a refusal. */
export function checkTimes(claims: Claims, policy: TimesPolicy): { iat: number; exp: number } | TimesRefusal {
  const [iat, exp, nbf] = ['iat', 'exp', 'nbf'].map((name) => readClaim(claims, name))
  if (!isSeconds(iat) || !isSeconds(exp) || exp <= iat || (nbf !== undefined && !isSeconds(nbf))) return 'times'
  const nowSeconds = policy.now.getTime() / 1000
  if (nowSeconds >= exp + policy.leewaySeconds) return 'expired'
  if (Math.max(iat, isSeconds(nbf) ? nbf : 0) > nowSeconds + policy.leewaySeconds) return 'not_yet_valid'
  if (policy.maxLifetimeSeconds !== undefined && exp - iat > policy.maxLifetimeSeconds) return 'lifetime'
  return { iat, exp }
}
