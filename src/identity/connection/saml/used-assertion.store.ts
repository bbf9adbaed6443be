import type { ConnectionId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { rowStatement } from '../../../postgres/statement/statement.ts'

/** An assertion that was used, by the hash of its connection and its id: a provider may choose long ones. */
interface UsedAssertion {
  connection: ConnectionId
  idHash: Buffer
  expiresAt: Date
}

/** Inserts a used assertion. Undefined when it is there already, also by a transaction that has not ended. */
export const insertAssertion = rowStatement<{ connection: string }, UsedAssertion>(`
  insert into saml_assertion (id_hash, connection, expires_at) values ($idHash, $connection, $expiresAt)
  on conflict (id_hash) do nothing returning connection`)

/** Deletes assertions that expired before `before`, at most `limit`. Returns their number. */
export const deleteExpiredAssertions = deletionOfOld('saml_assertion', { key: 'id_hash', time: 'expires_at' })
