import type { Keyring } from '../keyring.ts'
import { prepareSigningKeys, type SigningKeys } from '../outbound/signature.ts'

/** Secrets held in memory at most; beyond, the one that was opened first is dropped. */
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
  const held = new Map<string, { sealed: string; keys: SigningKeys }>()
  return {
    open: (receiver, sealed) => {
      const known = held.get(receiver)
      if (known?.sealed === sealed) return known.keys
      held.delete(receiver)
      const keys = prepareSigningKeys(keyring.open(sealed, contextOf(receiver)))
      const [oldest] = held.size >= limit ? held.keys() : []
      if (oldest !== undefined) held.delete(oldest)
      held.set(receiver, { sealed, keys })
      return keys
    },
  }
}
