import { type Keyring, KeyringError } from '../../base/keyring.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'

const BATCH_SIZE = 200

interface StoredSecret {
  id: string
  secretEncrypted: string
}

export interface StoredSecrets {
  /** Those that do not begin with `prefix`, in the order of ids, after `after`; locked until the transaction ends. */
  list(db: Database, input: { prefix: string; after: string | null; limit: number }): Promise<StoredSecret[]>
  replace(db: Database, id: string, secretEncrypted: string): Promise<void>
  contextOf(id: string): string
}

/**
 * Encrypts secrets under an older key again, under the first one (docs/operations.md, rotation of SECRET_KEY). Returns their
 * number; unreadable ones stay.
 */
export async function reencryptSecrets(
  { keyring }: { keyring: Keyring },
  db: Database,
  secrets: StoredSecrets,
): Promise<number> {
  let after: string | null = null
  let reencrypted = 0
  for (;;) {
    const batch: StoredSecret[] = await inTransaction(db, async (tx) => {
      const rows = await secrets.list(tx, { prefix: keyring.currentPrefix, after, limit: BATCH_SIZE })
      for (const row of rows) {
        const context = secrets.contextOf(row.id)
        const secret = openIfReadable(keyring, row.secretEncrypted, context)
        if (secret === undefined) continue
        await secrets.replace(tx, row.id, keyring.seal(secret, context))
        reencrypted += 1
      }
      return rows
    })
    const last = batch.at(-1)
    if (!last || batch.length < BATCH_SIZE) return reencrypted
    after = last.id
  }
}

function openIfReadable(keyring: Keyring, sealed: string, context: string): string | undefined {
  try {
    return keyring.open(sealed, context)
  } catch (error) {
    if (error instanceof KeyringError) return undefined
    throw error
  }
}
