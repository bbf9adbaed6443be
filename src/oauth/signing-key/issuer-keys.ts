import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'

/** Read times of an issuer's keys, in ms. */
export interface KeyTimes {
  /** Cache lifetime of keys; then they are refreshed in the background. */
  freshMs: number
  /** Maximum age of keys while the issuer does not answer. */
  keptMs: number
  /** Minimum interval between two reads. */
  pauseMs: number
}

/** The times for an issuer over the network. */
const REMOTE_KEYS: KeyTimes = { freshMs: 10 * 60_000, keptMs: 60 * 60_000, pauseMs: 60_000 }

/** Maximum number of keys of one issuer. */
const KEYS_LIMIT = 32

/** The longest `kid`, in characters. */
export const KID_LENGTH_LIMIT = 255

/** The public keys of an issuer. */
export interface IssuerKeys {
  /** The key with this id; undefined when the issuer has none, as far as is known. Never rejects. */
  find(kid: string): Promise<KeyObject | undefined>
}

/** Dependencies of the keys of an issuer. */
export interface IssuerKeysDeps {
  /** Reads the JWK set (RFC 7517 section 5): from the network, or from the own database. */
  load: () => Promise<unknown>
  clock: Pick<Clock, 'now'>
  logger: Pick<Logger, 'warn'>
  /** Default: those for an issuer over the network. */
  times?: KeyTimes
}

/**
 * Caches the keys of an issuer (docs/contract/oauth-exchange.md#issuer-keys). An unknown `kid` causes a read at most
 * once in `pauseMs`, which concurrent calls share. Unknown ids are not stored, so they need no memory.
 */
export function buildIssuerKeys({ load, clock, logger, times = REMOTE_KEYS }: IssuerKeysDeps): IssuerKeys {
  let cached: { keys: ReadonlyMap<string, KeyObject>; readAtMs: number } | undefined
  let askedAtMs: number | undefined
  let reading: Promise<void> | undefined

  async function read(): Promise<void> {
    askedAtMs = clock.now()
    try {
      cached = { keys: readKeySet(await load()), readAtMs: clock.now() }
    } catch (error) {
      logger.warn({ err: error }, 'keys of the token issuer not read: see docs/errors.md, oauth_exchange_failed')
    } finally {
      reading = undefined
    }
  }

  /** Reads, or joins the read in flight; does nothing within `pauseMs` after a read began. */
  function readUnlessPaused(): Promise<void> | undefined {
    // A clock that steps back does not prolong the pause.
    const isPause = askedAtMs !== undefined && Math.abs(clock.now() - askedAtMs) < times.pauseMs
    if (!reading && !isPause) reading = read()
    return reading
  }

  const ageMs = () => (cached ? Math.abs(clock.now() - cached.readAtMs) : Number.POSITIVE_INFINITY)
  const findKept = (kid: string) => (ageMs() < times.keptMs ? cached?.keys.get(kid) : undefined)

  return {
    find: async (kid) => {
      const key = findKept(kid)
      if (!key) await readUnlessPaused()
      else if (ageMs() >= times.freshMs) void readUnlessPaused()
      return key ?? findKept(kid)
    },
  }
}

/** The ES256 keys of a JWK set by their ids. Others are omitted, and so are all keys of a repeated id. */
function readKeySet(value: unknown): Map<string, KeyObject> {
  const set = asObject(value).keys
  if (!Array.isArray(set)) throw new Error('the answer is not a JWK set')
  const found = new Map<string, KeyObject>()
  const repeated = new Set<string>()
  for (const jwk of set.slice(0, KEYS_LIMIT).map(asObject)) {
    const { kid } = jwk
    if (typeof kid !== 'string' || kid === '' || kid.length > KID_LENGTH_LIMIT || !isVerificationKey(jwk)) continue
    const key = readPublicKey(jwk)
    if (!key) continue
    if (found.has(kid)) repeated.add(kid)
    found.set(kid, key)
  }
  for (const kid of repeated) found.delete(kid)
  return found
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isVerificationKey({ kty, crv, alg, use, key_ops: operations }: Record<string, unknown>): boolean {
  if (kty !== 'EC' || crv !== 'P-256') return false
  if ((alg !== undefined && alg !== 'ES256') || (use !== undefined && use !== 'sig')) return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

/** The public part of a key, without other members of its JWK. Undefined for coordinates outside the curve. */
function readPublicKey({ kty, crv, x, y }: Record<string, unknown>): KeyObject | undefined {
  try {
    return createPublicKey({ key: { kty, crv, x, y } as { kty: 'EC' }, format: 'jwk' })
  } catch {
    return undefined
  }
}
