import type { ConnectionId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** The id of an assertion that was used, by its hash: a provider may choose long ones. */
interface UsedAssertion {
  connection: ConnectionId
  idHash: Buffer
  expiresAt: Date
}

const insert = statement<{ connection: string }, UsedAssertion>(`
  insert into saml_assertion (connection, id_hash, expires_at) values ($connection, $idHash, $expiresAt)
  on conflict (connection, id_hash) do nothing returning connection`)

/** Inserts a used assertion. False when it is there already, also by a transaction that has not ended. */
export async function insertAssertion(db: Database, row: UsedAssertion): Promise<boolean> {
  return (await insert(db, row)).length > 0
}

const removeOld = statement<{ connection: string }, { before: Date; limit: number }>(`
  delete from saml_assertion where id_hash = any(array(
    select id_hash from saml_assertion where expires_at < $before limit $limit for update skip locked))
    and expires_at < $before
  returning connection`)

/** Deletes assertions that expired before `before`, at most `limit`. Returns their number. */
export async function deleteExpiredAssertions(db: Database, before: Date, limit: number): Promise<number> {
  return (await removeOld(db, { before, limit })).length
}
