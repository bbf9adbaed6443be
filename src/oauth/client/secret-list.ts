import { buildCache } from '../../base/cache.ts'
import { notFound } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findSecrets, type ListedSecret, removeSecret, touchSecret } from './secret-list.store.ts'

/** Precision of the last use of a secret, and the interval at which a process writes it. */
const USE_PRECISION_MS = 60_000

/** Secrets whose last write a process remembers; beyond, it asks the database again. */
const REMEMBERED_LIMIT = 10_000

/** Notes uses of the secrets of clients. */
export type NoteSecretUse = (use: { client: string; hash: Buffer; nowMs: number }) => Promise<void>

/** Builds the note of uses: a statement a minute for each valid secret in use, none for strangers. */
export function buildSecretUses(db: Database): NoteSecretUse {
  const notedMs = buildCache<string, number>({ limit: REMEMBERED_LIMIT })
  return async ({ client, hash, nowMs }) => {
    const key = hash.toString('base64url')
    if (nowMs - (notedMs.find(key) ?? Number.NEGATIVE_INFINITY) < USE_PRECISION_MS) return
    notedMs.put(key, nowMs)
    await touchSecret(db, { client, hash, before: new Date(nowMs - USE_PRECISION_MS), now: new Date(nowMs) })
  }
}

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
