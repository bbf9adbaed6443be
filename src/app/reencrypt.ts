import type { Keyring } from '../keyring.ts'
import { reencryptSigningKeys } from '../oauth/signing-key.ts'
import type { Database } from '../postgres/database.ts'
import { TARGET_SECRETS } from '../provisioning/stored-secrets.ts'
import { reencryptTotpSecrets } from '../sign-in/totp-factor.ts'
import { reencryptSecrets } from '../signed-post/reencrypt.ts'
import type { SecretPlace } from '../stored-secret/stored-secret.store.ts'
import { WEBHOOK_SECRETS } from '../webhook/stored-secrets.ts'

/** Seals the secrets of each table anew, under the first key of SECRET_KEY. Each resolves with the number of secrets. */
export function buildReencryption(keyring: Keyring, db: Database): Record<SecretPlace, () => Promise<number>> {
  return {
    webhook: () => reencryptSecrets({ keyring }, db, WEBHOOK_SECRETS),
    provisioning_target: () => reencryptSecrets({ keyring }, db, TARGET_SECRETS),
    totp_factor: () => reencryptTotpSecrets({ keyring }, db),
    oauth_signing_key: () => reencryptSigningKeys(keyring, db),
  }
}
