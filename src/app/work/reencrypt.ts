import type { Keyring } from '../../base/keyring.ts'
import { reencryptSecrets } from '../../delivery/post/reencrypt.ts'
import { CONNECTION_SECRETS } from '../../identity/connection/stored-secrets.ts'
import { TOTP_SECRETS } from '../../identity/sign-in/second-factor/totp-factor.ts'
import { reencryptSigningKeys } from '../../oauth/signing-key/signing-key.ts'
import type { SecretPlace } from '../../operations/stored-secret/stored-secret.store.ts'
import { CELL_SECRETS } from '../../postgres/cell/cell.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type Sweep, sweepOnce } from '../../postgres/sweep.ts'
import { TARGET_SECRETS } from '../../provisioning/target/stored-secrets.ts'
import { WEBHOOK_HEADERS, WEBHOOK_SECRETS, WEBHOOK_SIGNING_KEYS } from '../../webhook/registry/stored-secrets.ts'

/** Encrypts the secrets of each table again under the first key of SECRET_KEY; each resolves with their number. */
export function buildReencryption(keyring: Keyring, db: Database): Record<SecretPlace, () => Promise<number>> {
  return {
    webhook: async () => {
      let secrets = 0
      for (const place of [WEBHOOK_SECRETS, WEBHOOK_HEADERS, WEBHOOK_SIGNING_KEYS])
        secrets += await reencryptSecrets({ keyring }, db, place)
      return secrets
    },
    provisioning_target: () => reencryptSecrets({ keyring }, db, TARGET_SECRETS),
    connection: () => reencryptSecrets({ keyring }, db, CONNECTION_SECRETS),
    totp_factor: () => reencryptSecrets({ keyring }, db, TOTP_SECRETS),
    oauth_signing_key: () => reencryptSigningKeys(keyring, db),
    cell: () => reencryptSecrets({ keyring }, db, CELL_SECRETS),
  }
}

/** The same as steps of the maintenance. */
export function buildReencryptionSweeps(keyring: Keyring, db: Database): readonly Sweep[] {
  const { webhook, provisioning_target, connection, totp_factor, oauth_signing_key, cell } = buildReencryption(
    keyring,
    db,
  )
  return [
    sweepOnce('reencryptedFactors', totp_factor),
    sweepOnce('reencrypted', async () => {
      const ofReceivers = (await webhook()) + (await provisioning_target())
      return ofReceivers + (await connection()) + (await oauth_signing_key()) + (await cell())
    }),
  ]
}
