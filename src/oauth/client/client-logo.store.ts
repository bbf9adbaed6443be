import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { ClientId } from './client.store.ts'

/** The served logo of a client. */
export interface ClientLogo {
  mediaType: string
  body: Buffer
  /** The start of the SHA-256 of the body. */
  hash: string
}

const upsert = closingStatement<{ client: ClientId; mediaType: string; body: Buffer }>(`
  kept_logo as (
    insert into oauth_client_logo (client, media_type, body) values ($client, $mediaType, $body)
    on conflict (client) do update set media_type = excluded.media_type, body = excluded.body)`)

/** Stores the logo of a client, with the last statement of the transaction. */
export function keepLogo(db: Database, client: ClientId, { mediaType, body }: ClientLogo): Promise<void> {
  return upsert(db, { client, mediaType, body })
}

const remove = closingStatement<{ client: ClientId }>(
  'removed_logo as (delete from oauth_client_logo where client = $client)',
)

/** Removes the logo of a client, with the last statement of the transaction. */
export function removeLogo(db: Database, client: ClientId): Promise<void> {
  return remove(db, { client })
}

const selectOne = statement<{ media_type: string; body: Buffer; logo_hash: string }, { client: string }>(`
  select l.media_type, l.body, (select c.logo_hash from oauth_client c where c.document_id = l.client) as logo_hash
  from oauth_client_logo l where l.client = $client`)

/** The logo of a client. */
export async function findLogo(db: Database, client: string): Promise<ClientLogo | undefined> {
  const [row] = await selectOne(db, { client })
  return row && { mediaType: row.media_type, body: row.body, hash: row.logo_hash }
}
