import type { WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

const selectStale = statement<
  { id: WebhookId; secretEncrypted: string },
  { prefix: string; after: string | null; limit: number }
>(`
  select document_id as id, secret_encrypted as "secretEncrypted" from webhook
  where secret_encrypted is not null and not starts_with(secret_encrypted, $prefix)
    and ($after::uuid is null or document_id > $after)
  order by document_id limit $limit for update`)

/** Encrypted secrets that do not begin with `prefix`, in the order of ids, after `after`; locked until the transaction ends. */
export function listStaleSecrets(
  db: Database,
  input: { prefix: string; after: string | null; limit: number },
): Promise<{ id: WebhookId; secretEncrypted: string }[]> {
  return selectStale(db, input)
}

const replace = statement<never, { id: string; secretEncrypted: string }>(
  'update webhook set secret_encrypted = $secretEncrypted where document_id = $id',
)

/** Replaces the ciphertext of a secret; the secret itself and the row's times stay. */
export async function replaceSecret(db: Database, id: string, secretEncrypted: string): Promise<void> {
  await replace(db, { id, secretEncrypted })
}
