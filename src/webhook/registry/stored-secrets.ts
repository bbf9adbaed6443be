import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { secretContextOf } from './webhook.ts'
import { listStaleSecrets, replaceSecret } from './webhook-secret.store.ts'

/** The secrets of webhooks, for a new SECRET_KEY. */
export const WEBHOOK_SECRETS: StoredSecrets = {
  list: listStaleSecrets,
  replace: replaceSecret,
  contextOf: secretContextOf,
}
