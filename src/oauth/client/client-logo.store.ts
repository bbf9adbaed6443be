import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import type { ClientId } from './client.store.ts'

/** The served logo of a client. */
export interface ClientLogo {
  mediaType: string
  body: Buffer
  /** The start of the SHA-256 of the body. */
  hash: string
}

/** Stores the logo of a client, with the last statement of the transaction. */
export const keepLogo = closingStatement<{ client: ClientId; mediaType: string; body: Buffer }>(`
  kept_logo as (
    insert into oauth_client_logo (client, media_type, body) values ($client, $mediaType, $body)
    on conflict (client) do update set media_type = excluded.media_type, body = excluded.body)`)

/** Removes the logo of a client, with the last statement of the transaction. */
export const removeLogo = closingStatement<{ client: ClientId }>(
  'removed_logo as (delete from oauth_client_logo where client = $client)',
)

/** The logo of a client. */
export const findLogo = rowStatement<ClientLogo, { client: string }>(`
  select l.media_type as "mediaType", l.body,
    (select c.logo_hash from oauth_client c where c.document_id = l.client) as hash
  from oauth_client_logo l where l.client = $client`)
