import { buildCache } from '../../base/cache.ts'
import type { Keyring } from '../../base/keyring.ts'
import { prepareSigningKeys, type SigningKeys } from '../../outbound/signature.ts'

/** Secrets held in memory at most. */
const SECRETS_LIMIT = 10_000

/** The signing keys of receivers, decrypted once and held in memory. */
export interface SecretCache {
  /**
   * The keys of a receiver whose secret is stored as `sealed`. A rotated secret is stored otherwise, so the keys of the one
   * before are dropped at its first use. Throws a `KeyringError` for one that does not open.
   */
  open(receiver: string, sealed: string): SigningKeys
}

/** Builds the cache. `contextOf` is the context under which the secret of a receiver is sealed. */
export function buildSecretCache(
  keyring: Keyring,
  contextOf: (receiver: string) => string,
  limit = SECRETS_LIMIT,
): SecretCache {
  const cache = buildCache<string, { sealed: string; keys: SigningKeys }>({ limit })
  return {
    open: (receiver, sealed) => {
      const cached = cache.find(receiver)
      if (cached?.sealed === sealed) return cached.keys
      cache.drop(receiver)
      const keys = prepareSigningKeys(keyring.open(sealed, contextOf(receiver)))
      cache.put(receiver, { sealed, keys })
      return keys
    },
  }
}
