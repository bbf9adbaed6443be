import type { WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

interface Sealed {
  id: WebhookId
  secretEncrypted: string
}

type Sought = { prefix: string; after: string | null; limit: number }

type SealedColumn = 'secret_encrypted' | 'headers_encrypted' | 'signing_key_encrypted'

const selectStale = (column: SealedColumn) =>
  statement<Sealed, Sought>(`
  select document_id as id, ${column} as "secretEncrypted" from webhook
  where ${column} is not null and not starts_with(${column}, $prefix)
    and ($after::uuid is null or document_id > $after)
  order by document_id limit $limit for update`)

const selectSecrets = selectStale('secret_encrypted')
const selectHeaders = selectStale('headers_encrypted')
const selectSigningKeys = selectStale('signing_key_encrypted')

/** Encrypted secrets that do not begin with `prefix`, in the order of ids, after `after`; locked until the transaction ends. */
export function listStaleSecrets(db: Database, input: Sought): Promise<Sealed[]> {
  return selectSecrets(db, input)
}

/** The same of encrypted headers. */
export function listStaleHeaders(db: Database, input: Sought): Promise<Sealed[]> {
  return selectHeaders(db, input)
}

/** The same of encrypted private keys. */
export function listStaleSigningKeys(db: Database, input: Sought): Promise<Sealed[]> {
  return selectSigningKeys(db, input)
}

const replace = (column: SealedColumn) =>
  statement<never, { id: string; sealed: string }>(`update webhook set ${column} = $sealed where document_id = $id`)

const updateSecret = replace('secret_encrypted')
const updateHeaders = replace('headers_encrypted')
const updateSigningKey = replace('signing_key_encrypted')

/** Replaces the encrypted form of a secret; the secret itself and the row's times stay. */
export async function replaceSecret(db: Database, id: string, sealed: string): Promise<void> {
  await updateSecret(db, { id, sealed })
}

/** The same of headers. */
export async function replaceHeaders(db: Database, id: string, sealed: string): Promise<void> {
  await updateHeaders(db, { id, sealed })
}

/** The same of a private key. */
export async function replaceSigningKey(db: Database, id: string, sealed: string): Promise<void> {
  await updateSigningKey(db, { id, sealed })
}
