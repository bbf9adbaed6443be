import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../../base/keyring.ts'
import type { Random } from '../../../base/random.ts'

/** Lifetime of a flow (docs/contract/social-login.md#flow-protection). */
export const FLOW_LIFETIME_MS = 600_000

const STATE_BYTES = 32

/** `<random>.<expiry in seconds, base 36>.<signature>`, in base64url. */
const STATE_PATTERN = /^([A-Za-z0-9_-]{43})\.([0-9a-z]{1,8})\.([A-Za-z0-9_-]{43})$/

const KEY_PURPOSE = 'login state v1'

/** A state for the browser, and the hash that the database keeps. */
export interface IssuedState {
  state: string
  hash: Buffer
  expiresAt: Date
}

/** Makes a signed state for one provider, of a limited lifetime. The database ensures its single use. */
export function issueState(
  deps: { keyring: Pick<Keyring, 'deriveKeys'>; random: Random },
  provider: string,
  now: Date,
): IssuedState {
  const expiresAt = new Date(now.getTime() + FLOW_LIFETIME_MS)
  const seconds = Math.floor(expiresAt.getTime() / 1000).toString(36)
  const text = `${deps.random.bytes(STATE_BYTES).toString('base64url')}.${seconds}`
  const [key] = deps.keyring.deriveKeys(KEY_PURPOSE)
  if (!key) throw new Error('a keyring has at least one key')
  const state = `${text}.${signText(key, provider, text).toString('base64url')}`
  return { state, hash: hashSecret(state), expiresAt }
}

/** The hash of a genuine state of this provider, or the reason of a refusal. */
export function readState(
  keyring: Pick<Keyring, 'deriveKeys'>,
  text: string | undefined,
  { provider, now }: { provider: string; now: Date },
): { hash: Buffer; isExpired: boolean } | { reason: 'state_missing' | 'state_forged' } {
  if (text === undefined || text === '') return { reason: 'state_missing' }
  const [, random, seconds, signature] = STATE_PATTERN.exec(text) ?? []
  if (random === undefined || seconds === undefined || signature === undefined) return { reason: 'state_forged' }
  const given = Buffer.from(signature, 'base64url')
  const isGenuine = keyring
    .deriveKeys(KEY_PURPOSE)
    .some((key) => timingSafeEqual(signText(key, provider, `${random}.${seconds}`), given))
  if (!isGenuine) return { reason: 'state_forged' }
  return { hash: hashSecret(text), isExpired: Number.parseInt(seconds, 36) * 1000 <= now.getTime() }
}

function signText(key: Buffer, provider: string, text: string): Buffer {
  return createHmac('sha256', key).update(`${provider}\n${text}`).digest()
}

/** Stored form of a random secret of 32 bytes: too long to guess, so a plain hash is enough. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
