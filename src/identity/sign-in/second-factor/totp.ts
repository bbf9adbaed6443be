import { timingSafeEqual } from 'node:crypto'
import { HOTP, Secret, TOTP } from 'otpauth'

/** One-time codes by time (RFC 6238): HMAC-SHA1, 6 digits, 30 s. Other parameters are ignored by common apps. */

const STEP_MS = 30_000

const DIGITS = 6
const ALGORITHM = 'SHA1'

/** Steps before and after the present one whose codes are accepted, for clocks that differ and users who type. */
const TOLERATED_STEPS = 1

/** Bytes of a secret: the length of the HMAC's output (RFC 4226 section 4). */
export const TOTP_SECRET_BYTES = 20

/** The form of a code. */
export const TOTP_CODE_PATTERN = /^\d{6}$/

/** A secret as the library takes it. A copy, because a `Buffer` may share its memory with others. */
const toSecret = (bytes: Buffer) => new Secret({ buffer: Uint8Array.from(bytes).buffer })

/** The code of a time step (RFC 4226 section 5.3). `digits` is at most 8. */
export function computeTotp(secret: Buffer, step: number, digits = DIGITS): string {
  return HOTP.generate({ secret: toSecret(secret), counter: step, digits, algorithm: ALGORITHM })
}

/** The time step of an instant, in milliseconds since 1970. */
export function findStep(nowMs: number): number {
  return Math.floor(nowMs / STEP_MS)
}

/**
 * The time step whose code this is: the current, the previous or the next one, if it is later than `after`, the step of
 * the last accepted code (RFC 6238 section 5.2). Undefined for a wrong or used code. Compares each step in the same
 * time, which the library's own comparison does not: it stops at the first match, and throws for six characters that
 * are not ASCII.
 */
export function matchTotp(
  secret: Buffer,
  code: string,
  { nowMs, after }: { nowMs: number; after: number | null },
): number | undefined {
  if (!TOTP_CODE_PATTERN.test(code)) return undefined
  const present = findStep(nowMs)
  let matched: number | undefined
  for (let step = Math.max(0, present - TOLERATED_STEPS); step <= present + TOLERATED_STEPS; step += 1) {
    const isSame = timingSafeEqual(Buffer.from(computeTotp(secret, step)), Buffer.from(code))
    if (isSame && (after === null || step > after)) matched ??= step
  }
  return matched
}

/** Base32 without padding (RFC 4648 section 6), as authenticator apps read secrets. */
export function encodeBase32(bytes: Buffer): string {
  return toSecret(bytes).base32
}

/** The bytes of a text in base32 (RFC 4648 section 6), without padding, in upper case. Throws for other characters. */
export function decodeBase32(text: string): Buffer {
  return Buffer.from(Secret.fromBase32(text).bytes)
}

/** The address that authenticator apps read from a QR code. `service` and `user` are shown in the app. */
export function buildOtpauthUrl(secret: Buffer, { service, user }: { service: string; user: string }): string {
  return new TOTP({
    issuer: service.replaceAll(':', ' '),
    label: user,
    secret: toSecret(secret),
    algorithm: ALGORITHM,
    digits: DIGITS,
    period: STEP_MS / 1000,
  }).toString()
}
