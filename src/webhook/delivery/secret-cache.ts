import type { WebhookId } from '../../id.ts'
import type { Keyring } from '../../keyring.ts'
import { prepareSigningKeys, type SigningKeys } from '../../outbound/signature.ts'
import { secretContextOf } from '../webhook.ts'

/** Secrets held in memory at most; beyond, the one that was opened first is dropped. */
const SECRETS_LIMIT = 10_000

/** The signing keys of webhooks, decrypted once and held in memory. */
export interface SecretCache {
  /**
   * The keys of a webhook whose secret is stored as `sealed`. A rotated secret is stored otherwise, so the keys of the one
   * before are dropped at its first use. Throws a `KeyringError` for one that does not open.
   */
  open(webhook: WebhookId, sealed: string): SigningKeys
}

/** Builds the cache. */
export function buildSecretCache(keyring: Keyring, limit = SECRETS_LIMIT): SecretCache {
  const held = new Map<WebhookId, { sealed: string; keys: SigningKeys }>()
  return {
    open: (webhook, sealed) => {
      const known = held.get(webhook)
      if (known?.sealed === sealed) return known.keys
      held.delete(webhook)
      const keys = prepareSigningKeys(keyring.open(sealed, secretContextOf(webhook)))
      const [oldest] = held.size >= limit ? held.keys() : []
      if (oldest !== undefined) held.delete(oldest)
      held.set(webhook, { sealed, keys })
      return keys
    },
  }
}
