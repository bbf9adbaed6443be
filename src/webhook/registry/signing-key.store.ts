import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'
import { type WebhookRecord, webhook } from './webhook.store.ts'

interface NewKey {
  publicKey: string | null
  signingKeyEncrypted: string | null
  /** End of the listing of the former public key. */
  until: Date
  by: UserId
  now: Date
}

/** Replaces the key of a webhook. Undefined for an unknown webhook, one without a key, and while a former key is listed. */
export const rotateSigningKeyOf = rowStatement<WebhookRecord, NewKey & { id: string }>(`
  update webhook w set previous_public_key = public_key, previous_public_key_until = $until, public_key = $publicKey,
    signing_key_encrypted = $signingKeyEncrypted, updated_by = $by, updated_at = $now
  where w.document_id = $id and w.deleted_at is null and w.public_key is not null
    and (w.previous_public_key_until is null or w.previous_public_key_until <= $now)
  returning ${webhook.members('w')}`)

const selectListed = rowStatement<{ publicKey: string; previous: string | null }, { id: string; now: Date }>(`
  select public_key as "publicKey", case when previous_public_key_until > $now then previous_public_key end as previous
  from webhook where document_id = $id and deleted_at is null and is_actived and public_key is not null`)

/** The listed public keys of a webhook, the present one first. Undefined for one that lists none. */
export async function findListedKeys(db: Database, id: string, now: Date): Promise<string[] | undefined> {
  const row = await selectListed(db, { id, now })
  return row && [row.publicKey, ...(row.previous === null ? [] : [row.previous])]
}
