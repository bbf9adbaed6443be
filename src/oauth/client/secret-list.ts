import { notFound } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findSecrets, type ListedSecret, removeSecret } from './secret-list.store.ts'

/** The valid secrets of a client, the newest first. Throws 404. */
export async function listSecrets(db: Database, target: { client: string; now: Date }): Promise<ListedSecret[]> {
  const secrets = await findSecrets(db, target)
  if (!secrets) throw notFound('OAuth client')
  return secrets
}

/** Ends a valid secret of a client at once; the others stay. Throws 404, also for the second of two at once. */
export async function revokeSecret(
  db: Database,
  target: { client: string; secret: string; now: Date },
): Promise<ListedSecret> {
  const removed = await removeSecret(db, target)
  if (!removed) throw notFound('secret of the client')
  return removed
}
