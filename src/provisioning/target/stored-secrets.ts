import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { listStaleTargetSecrets, replaceTargetSecret } from './target.store.ts'
import { targetSecretContextOf } from './target.ts'

/** The secrets and tokens of targets, for a new SECRET_KEY. */
export const TARGET_SECRETS: StoredSecrets = {
  list: listStaleTargetSecrets,
  replace: replaceTargetSecret,
  contextOf: targetSecretContextOf,
}
