import type { WebhookId } from '../../base/id.ts'
import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { changeStatement, statement } from '../../postgres/statement/statement.ts'

/** The values of an encrypted column of webhooks; a replaced one leaves the times of the row as they are. */
export function secretsIn(column: 'secret_encrypted' | 'headers_encrypted' | 'signing_key_encrypted') {
  const list = statement<{ id: WebhookId; secretEncrypted: string }, Parameters<StoredSecrets['list']>[1]>(`
  select document_id as id, ${column} as "secretEncrypted" from webhook
  where ${column} is not null and not starts_with(${column}, $prefix)
    and ($after::uuid is null or document_id > $after)
  order by document_id limit $limit for update`)
  const update = changeStatement<{ id: string; sealed: string }>(
    `update webhook set ${column} = $sealed where document_id = $id`,
  )
  const replace: StoredSecrets['replace'] = async (db, id, sealed) => void (await update(db, { id, sealed }))
  return { list, replace }
}
