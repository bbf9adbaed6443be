import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { headersContextOf } from './own-headers.ts'
import { secretContextOf } from './webhook.ts'
import { listStaleHeaders, listStaleSecrets, replaceHeaders, replaceSecret } from './webhook-secret.store.ts'

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
