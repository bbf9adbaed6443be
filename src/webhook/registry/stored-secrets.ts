import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { headersContextOf } from './own-headers.ts'
import { signingKeyContextOf } from './signing-key.ts'
import { secretContextOf } from './webhook.ts'
import { secretsIn } from './webhook-secret.store.ts'

/** The secrets of webhooks, for a new SECRET_KEY. */
export const WEBHOOK_SECRETS: StoredSecrets = { ...secretsIn('secret_encrypted'), contextOf: secretContextOf }

/** The headers of webhooks, likewise. */
export const WEBHOOK_HEADERS: StoredSecrets = { ...secretsIn('headers_encrypted'), contextOf: headersContextOf }

/** The private keys of their asymmetric signatures, likewise. */
export const WEBHOOK_SIGNING_KEYS: StoredSecrets = {
  ...secretsIn('signing_key_encrypted'),
  contextOf: signingKeyContextOf,
}
