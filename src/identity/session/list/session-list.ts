import type { SessionId } from '../../../base/id.ts'
import { notFound } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { checkMayManageUser } from '../../access/delegation.ts'
import { findOwners } from '../../access/own-rows.ts'
import type { SessionRecord } from '../session.store.ts'
import { endLockedSessions, findOwnedSession, lockOwnedSession, type OwnedSession } from './session-list.store.ts'

/** The session of a request, and the time of the request. */
export interface SessionTarget {
  id: string
  caller: Caller
  permission: string
  now: Date
}

/**
 * The valid session with this id that the caller may revoke: its own, or with the permission any user's, if the caller
 * holds all permissions of the user. Throws 404, also for another user's session outside the caller's scope, and 403.
 */
export async function loadEndableSession(db: Database, target: SessionTarget): Promise<SessionRecord> {
  return checkEndable(await findOwnedSession(db, target), target).session
}

function checkEndable<Found extends OwnedSession>(found: Found | undefined, target: SessionTarget): Found {
  const { caller, permission } = target
  const owner = findOwners(caller, permission)
  if (!found || (owner !== 'all' && found.session.userId !== owner)) throw notFound('session')
  if (found.session.userId !== caller.userId) checkMayManageUser(caller, found.holdings)
  return found
}

/**
 * Revokes a session and those opened from it, at once in every process, with the last statement of the transaction.
 * Returns those revoked by this call. Throws like `loadEndableSession`, and 404 for a session that ended in the
 * meantime.
 */
export async function endSession(db: Database, target: SessionTarget): Promise<SessionId[]> {
  const { session, tree } = checkEndable(await lockOwnedSession(db, target), target)
  if (!tree.includes(session.id)) throw notFound('session')
  await endLockedSessions(db, { ids: tree, userId: session.userId, now: target.now })
  return tree
}
