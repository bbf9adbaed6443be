import { buildCache } from '../../base/cache.ts'
import type { Keyring } from '../../base/keyring.ts'
import { prepareSigningKeys, type SigningKeys } from '../../outbound/signature.ts'

/** Maximum number of cached secrets. */
const SECRETS_LIMIT = 10_000

/** The signing keys of receivers, decrypted once and cached. */
export interface SecretCache {
  /**
   * The keys of a receiver whose secret is stored as `sealed`. A rotated secret has another ciphertext, so the old keys
   * are dropped at its first use. Throws a `KeyringError` for one that cannot be decrypted.
   */
  open(receiver: string, sealed: string): SigningKeys
}

/** Builds the cache. `contextOf` returns the encryption context of a receiver's secret. */
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
