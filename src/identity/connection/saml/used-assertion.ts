import { createHash } from 'node:crypto'
import type { ConnectionId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { insertAssertion } from './used-assertion.store.ts'

/** Records the use of an assertion. Whether it is new: of several at once, one is (docs/contract/saml.md#checks). */
export async function noteAssertion(
  db: Database,
  { connection, id, expiresAt }: { connection: ConnectionId; id: string; expiresAt: Date },
): Promise<boolean> {
  const idHash = createHash('sha256').update(`${connection} ${id}`).digest()
  return (await insertAssertion(db, { connection, idHash, expiresAt })) !== undefined
}
