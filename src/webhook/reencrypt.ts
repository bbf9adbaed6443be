import type { WebhookId } from '../id.ts'
import { type Keyring, KeyringError } from '../keyring.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { listStaleSecrets, replaceSecret } from './webhook.store.ts'
import { secretContextOf } from './webhook.ts'

const BATCH_SIZE = 200

/**
 * Seals anew, under the first key of SECRET_KEY, every webhook secret that an older key made, so that the older key can
 * be taken out afterwards (docs/operations.md, rotation of SECRET_KEY). Returns how many were sealed anew. A secret that
 * no key opens is left as it is: its webhook's deliveries say `secret_unreadable`.
 */
export async function reencryptSecrets(deps: { keyring: Keyring }, db: Database): Promise<number> {
  let after: WebhookId | null = null
  let reencrypted = 0
  for (;;) {
    const batch = await inTransaction(db, async (tx) => {
      const rows = await listStaleSecrets(tx, { prefix: deps.keyring.currentPrefix, after, limit: BATCH_SIZE })
      for (const row of rows) if (await reencrypt(deps.keyring, tx, row)) reencrypted += 1
      return rows
    })
    const last = batch.at(-1)
    if (!last || batch.length < BATCH_SIZE) return reencrypted
    after = last.id
  }
}

async function reencrypt(
  box: Keyring,
  tx: Database,
  row: { id: WebhookId; secretEncrypted: string },
): Promise<boolean> {
  const context = secretContextOf(row.id)
  const secret = openIfReadable(box, row.secretEncrypted, context)
  if (secret === undefined) return false
  await replaceSecret(tx, row.id, box.seal(secret, context))
  return true
}

function openIfReadable(box: Keyring, sealed: string, context: string): string | undefined {
  try {
    return box.open(sealed, context)
  } catch (error) {
    if (error instanceof KeyringError) return undefined
    throw error
  }
}
