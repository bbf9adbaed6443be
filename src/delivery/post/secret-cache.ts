import { buildCache } from '../../base/cache.ts'
import type { Keyring } from '../../base/keyring.ts'
import { prepareSigningKeys, type SigningKeys } from '../../outbound/signature.ts'

const SECRETS_LIMIT = 10_000

/** Secrets of receivers, decrypted once and kept in memory. */
export interface SealedCache<Opened> {
  /**
   * Opens what a receiver has stored, in place of a former value. Throws a `KeyringError` for one that does not open.
   */
  open(receiver: string, sealed: string): Opened
}

/** Builds a cache. `contextOf` is the context under which the text of a receiver is sealed, `prepare` reads that text. */
export function buildSealedCache<Opened>(
  keyring: Keyring,
  options: { contextOf: (receiver: string) => string; prepare: (text: string) => Opened; limit: number },
): SealedCache<Opened> {
  const { contextOf, prepare, limit } = options
  const cache = buildCache<string, { sealed: string; opened: Opened }>({ limit })
  return {
    open: (receiver, sealed) => {
      const cached = cache.find(receiver)
      if (cached?.sealed === sealed) return cached.opened
      cache.drop(receiver)
      const opened = prepare(keyring.open(sealed, contextOf(receiver)))
      cache.put(receiver, { sealed, opened })
      return opened
    },
  }
}

/** Opens what a receiver has sealed; undefined for one that has nothing. */
export function openSealed<Opened>(
  cache: SealedCache<Opened>,
  receiver: string,
  sealed: string | null,
): Opened | 'unreadable' | undefined {
  if (sealed === null) return undefined
  try {
    return cache.open(receiver, sealed)
  } catch {
    return 'unreadable'
  }
}

export type SecretCache = SealedCache<SigningKeys>

/** Builds the cache of signing keys. `contextOf` is the context under which the secret of a receiver is sealed. */
export function buildSecretCache(
  keyring: Keyring,
  contextOf: (receiver: string) => string,
  limit = SECRETS_LIMIT,
): SecretCache {
  return buildSealedCache(keyring, { contextOf, prepare: prepareSigningKeys, limit })
}
