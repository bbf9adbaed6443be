import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { listStaleConnectionSecrets, replaceConnectionSecret } from './connection.store.ts'
import { connectionSecretContextOf } from './connection.ts'

/** The secrets of connections, for a new SECRET_KEY. */
export const CONNECTION_SECRETS: StoredSecrets = {
  list: listStaleConnectionSecrets,
  replace: replaceConnectionSecret,
  contextOf: connectionSecretContextOf,
}
