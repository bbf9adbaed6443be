import { createHmac, timingSafeEqual } from 'node:crypto'

/** One-time codes by time (RFC 6238): HMAC-SHA1, 6 digits, 30 s. Other parameters are ignored by common apps. */

/** The length of a time step. */
const STEP_MS = 30_000

const DIGITS = 6

/** Steps before and after the present one whose codes are accepted, for clocks that differ and people who type. */
const TOLERATED_STEPS = 1

/** Bytes of a secret: the length of the HMAC's output (RFC 4226 section 4). */
export const TOTP_SECRET_BYTES = 20

/** The form of a code. */
export const TOTP_CODE_PATTERN = /^\d{6}$/

/** The code of a time step (RFC 4226 section 5.3). `digits` is at most 8. */
export function computeTotp(secret: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = mac.readUInt8(mac.length - 1) & 0x0f
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The time step of an instant, in milliseconds since 1970. */
export function findStep(nowMs: number): number {
  return Math.floor(nowMs / STEP_MS)
}

/**
 * The time step whose code this is: the present one, the one before or the one after, if it is later than `after`, the
 * step of the last accepted code (RFC 6238 section 5.2). Undefined for a wrong or used code. Compares each step in the
 * same time.
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

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Base32 without padding (RFC 4648 section 6), as authenticator apps read secrets. */
export function encodeBase32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32[(held >>> bits) & 31]
    }
  }
  return bits === 0 ? text : text + BASE32[(held << (5 - bits)) & 31]
}

/** The address that authenticator apps read from a QR code. `service` and `person` are shown in the app. */
export function buildOtpauthUrl(secret: Buffer, { service, person }: { service: string; person: string }): string {
  const issuer = service.replaceAll(':', ' ')
  const query = `secret=${encodeBase32(secret)}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=6&period=30`
  return `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(person)}?${query}`
}
