import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { headersContextOf } from './own-headers.ts'
import { signingKeyContextOf } from './signing-key.ts'
import { secretContextOf } from './webhook.ts'
import {
  listStaleHeaders,
  listStaleSecrets,
  listStaleSigningKeys,
  replaceHeaders,
  replaceSecret,
  replaceSigningKey,
} from './webhook-secret.store.ts'

/** The secrets of webhooks, for a new SECRET_KEY. */
export const WEBHOOK_SECRETS: StoredSecrets = {
  list: listStaleSecrets,
  replace: replaceSecret,
  contextOf: secretContextOf,
}

/** The headers of webhooks, likewise. */
export const WEBHOOK_HEADERS: StoredSecrets = {
  list: listStaleHeaders,
  replace: replaceHeaders,
  contextOf: headersContextOf,
}

/** The private keys of their asymmetric signatures, likewise. */
export const WEBHOOK_SIGNING_KEYS: StoredSecrets = {
  list: listStaleSigningKeys,
  replace: replaceSigningKey,
  contextOf: signingKeyContextOf,
}
