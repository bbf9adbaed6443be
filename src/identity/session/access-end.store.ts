import type { SessionId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, statement } from '../../postgres/statement/statement.ts'

/** Access that survives a revocation of a user's access. */
export interface SparedAccess {
  /** Whether sessions of apps and families of OAuth tokens survive. Default false. */
  keepApps?: boolean
  /** The session that stays open. */
  kept?: SessionId
}

/** The values of both statements. */
interface EndingAccess {
  userId: UserId
  now: Date
  keepApps: boolean
  kept: SessionId | null
}

const endAccess = statement<{ document_id: SessionId }, EndingAccess>(
  'select end_access_of($userId, $now, $keepApps, $kept) as document_id',
)
const endAccessAhead = aheadStatement<EndingAccess>('select from end_access_of($userId, $now, $keepApps, $kept)')

/**
 * Revokes everything that a user opened: sessions, families of OAuth tokens, and flows in progress (`end_access_of` in
 * the migrations). Returns the sessions revoked by this call. Locks the user first, as opening a session does, so that
 * the session of a concurrent sign-in is revoked too.
 */
export async function endAccessRows(
  db: Database,
  { userId, keepApps = false, kept, now }: SparedAccess & { userId: UserId; now: Date },
): Promise<SessionId[]> {
  return (await endAccess(db, { userId, now, keepApps, kept: kept ?? null })).map((row) => row.document_id)
}

/** `endAccessRows` without its result; sent with the next statement of the transaction. */
export async function endUserAccess(
  db: Database,
  { userId, keepApps = false, kept, now }: SparedAccess & { userId: UserId; now: Date },
): Promise<void> {
  await endAccessAhead(db, { userId, now, keepApps, kept: kept ?? null })
}
