import { checkMayManageUser } from '../access/delegation.ts'
import { findOwners } from '../access/own-rows.ts'
import type { Caller } from '../http/caller.ts'
import { notFound } from '../http/problem.ts'
import type { SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { revokeSessionTree, type SessionRecord } from './session.store.ts'
import { findOwnedSession, revokeOtherSessionRows } from './session-list.store.ts'

/** A session that a request names, and the time of the request. */
export interface SessionTarget {
  id: string
  caller: Caller
  permission: string
  now: Date
}

/**
 * The living session with this id that the caller may end: its own, or with the permission any user's, if the caller
 * holds everything that the user holds. Throws 404, also for another user's session that the caller does not reach, and
 * 403.
 */
export async function loadEndableSession(db: Database, target: SessionTarget): Promise<SessionRecord> {
  const { id, caller, permission, now } = target
  const owner = findOwners(caller, permission)
  const found = await findOwnedSession(db, id, now)
  if (!found || (owner !== 'all' && found.session.userId !== owner)) throw notFound('session')
  if (found.session.userId !== caller.userId) checkMayManageUser(caller, found.holdings)
  return found.session
}

/**
 * Ends a session and those opened from it, at once in every process. Returns those that this call ended. Throws like
 * `loadEndableSession`, and 404 for a session that ended in the meantime.
 */
export async function endSession(db: Database, target: SessionTarget): Promise<SessionId[]> {
  const session = await loadEndableSession(db, target)
  const ended = await revokeSessionTree(db, session.id, target.now)
  if (!ended.includes(session.id)) throw notFound('session')
  return ended
}

/** Revokes all sessions of a user but one, at once in every process. Returns those that this call revoked. */
export function revokeOtherSessions(
  db: Database,
  input: { userId: UserId; keep: SessionId; now: Date },
): Promise<SessionId[]> {
  return revokeOtherSessionRows(db, input)
}
