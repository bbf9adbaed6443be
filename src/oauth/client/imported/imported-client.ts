import type { IdMaker } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, testStatement } from '../../../postgres/statement/statement.ts'
import { type ClientId, type ClientRecord, insertClient } from '../client.store.ts'
import { type ClientSettings, checkSettings } from '../client.ts'

/** A client of another system to register here (docs/contract/oauth.md#imported-clients). */
export interface ImportedClient {
  id: ClientId
  settings: ClientSettings
  /** SHA-256 of its secrets; none for a public client, and if the source does not export them. */
  secrets: readonly { hash: Buffer; expiresAt: Date | null }[]
}

/** Whether a client has this id, deleted ones among them. */
export const isClientKnown = testStatement<{ id: ClientId }>('select from oauth_client where document_id = $id')

const insertSecrets = closingStatement<{
  client: ClientId
  ids: readonly string[]
  hashes: readonly string[]
  expiries: readonly (Date | null)[]
  now: Date
}>(`
  imported_secrets as (
    insert into oauth_client_secret (document_id, client, secret_hash, expires_at, created_at)
    select x.id, $client, decode(x.hash, 'hex'), x.expires_at, $now
    from unnest($ids::uuid[], $hashes::text[], $expiries::timestamptz[]) x (id, hash, expires_at))`)

/** Registers a client with its secrets. False for one of an earlier import. Throws a 422 for refused settings. */
export async function importClient(
  { ids }: { ids: IdMaker },
  tx: Database,
  { id, settings, secrets, now }: ImportedClient & { now: Date },
): Promise<boolean> {
  checkSettings(settings)
  if (await isClientKnown(tx, { id })) return false
  const dates = { createdAt: now, updatedAt: now }
  const client: ClientRecord = { ...settings, id, logoHash: null, registration: 'administrator', ...dates }
  await insertClient(tx, client, undefined)
  if (secrets.length > 0)
    await insertSecrets(tx, {
      client: id,
      ids: secrets.map(() => ids.next<'oauth client secret'>()),
      hashes: secrets.map(({ hash }) => hash.toString('hex')),
      expiries: secrets.map(({ expiresAt }) => expiresAt),
      now,
    })
  return true
}
