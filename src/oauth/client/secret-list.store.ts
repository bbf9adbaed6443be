import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { changeStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'

export const listedSecret = defineRecord('oauth_client_secret', [
  'document_id',
  'created_at',
  'expires_at',
  'last_used_at',
])

/** A valid secret of a client, without the secret. */
export type ListedSecret = RecordOf<typeof listedSecret>

/** No row: the client does not exist; a row without an id: it has no valid secret. */
const selectSecrets = statement<{ secrets: ListedInJson[] }, { client: string; now: Date }>(`
  select (
    select coalesce(json_agg(l), '[]') from (
      select ${listedSecret.members('s')} from oauth_client_secret s
      where s.client = c.document_id and (s.expires_at is null or s.expires_at > $now)
      order by s.created_at desc, s.document_id desc
    ) l
  ) as secrets
  from oauth_client c where c.document_id = $client and c.deleted_at is null`)

/** In JSON an instant is text. */
interface ListedInJson extends Pick<ListedSecret, 'id'> {
  createdAt: string
  expiresAt: string | null
  lastUsedAt: string | null
}

const readInstant = (text: string | null): Date | null => (text === null ? null : new Date(text))

/** The valid secrets of a client, the newest first; undefined for an unknown client. */
export async function findSecrets(
  db: Database,
  { client, now }: { client: string; now: Date },
): Promise<ListedSecret[] | undefined> {
  const [row] = await selectSecrets(db, { client, now })
  return row?.secrets.map(({ id, createdAt, expiresAt, lastUsedAt }) => ({
    id,
    createdAt: new Date(createdAt),
    expiresAt: readInstant(expiresAt),
    lastUsedAt: readInstant(lastUsedAt),
  }))
}

/** Deletes a valid secret of a client: the second of two concurrent deletions finds nothing behind the lock. */
export const removeSecret = rowStatement<ListedSecret, { client: string; secret: string; now: Date }>(`
  delete from oauth_client_secret s
  where s.document_id = $secret and s.client = $client and (s.expires_at is null or s.expires_at > $now)
  returning ${listedSecret.members('s')}`)

/** Updates the last use of a secret of a client, unless it was updated after `before`. */
export const touchSecret = changeStatement<{ client: string; hash: Buffer; before: Date; now: Date }>(`
  update oauth_client_secret set last_used_at = $now where document_id = any(array(
    select s.document_id from oauth_client_secret s
    where s.client = $client and s.secret_hash = $hash and (s.last_used_at is null or s.last_used_at <= $before)))`)

/** Deletes up to `limit` secrets that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredSecrets = deletionOfOld('oauth_client_secret', { key: 'document_id', time: 'expires_at' })
