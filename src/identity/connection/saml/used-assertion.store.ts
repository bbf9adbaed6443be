import type { ConnectionId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** An assertion that was used, by the hash of its connection and its id: a provider may choose long ones. */
interface UsedAssertion {
  connection: ConnectionId
  idHash: Buffer
  expiresAt: Date
}

const insert = statement<{ connection: string }, UsedAssertion>(`
  insert into saml_assertion (id_hash, connection, expires_at) values ($idHash, $connection, $expiresAt)
  on conflict (id_hash) do nothing returning connection`)

/** Inserts a used assertion. False when it is there already, also by a transaction that has not ended. */
export async function insertAssertion(db: Database, row: UsedAssertion): Promise<boolean> {
  return (await insert(db, row)).length > 0
}

const removeOld = statement<{ connection: string }, { before: Date; limit: number }>(`
  delete from saml_assertion where id_hash = any(array(
    select id_hash from saml_assertion where expires_at < $before limit $limit for update skip locked))
  returning connection`)

/** Deletes assertions that expired before `before`, at most `limit`. Returns their number. */
export async function deleteExpiredAssertions(db: Database, before: Date, limit: number): Promise<number> {
  return (await removeOld(db, { before, limit })).length
}
