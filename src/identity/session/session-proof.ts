import type { SessionId, UserId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AuthMethod, rateMethods } from './auth-method.ts'
import type { SessionRecord } from './session.store.ts'
import { lockSession, lockUserAhead, lowerUserSessions, setSessionProof } from './session-proof.store.ts'

/** Locks a user until the transaction ends, as opening a session does; sent with the next statement of the transaction. */
export function lockUser(db: Database, userId: UserId): Promise<void> {
  return lockUserAhead(db, userId)
}

/**
 * Records that the user of a session proved a second factor by `methods` now (docs/contract/second-factor.md#step-up).
 * Throws 401 when the session was revoked in the meantime.
 */
export async function raiseSession(
  db: Database,
  input: { sessionId: SessionId; methods: readonly AuthMethod[]; now: Date },
): Promise<SessionRecord> {
  const { sessionId, methods, now } = input
  const session = await lockSession(db, sessionId)
  if (session) {
    const amr = [...new Set<string>([...session.amr, ...methods, 'mfa'])]
    const acr = rateMethods(amr)
    await setSessionProof(db, sessionId, { amr, acr, now })
    return { ...session, amr, acr, authTime: now, updatedAt: now }
  }
  throw new Problem('unauthenticated', 'The session was revoked during this request.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** Removes the mark of a second factor from every session of a user without factors. */
export function lowerSessions(db: Database, userId: UserId, now: Date): Promise<void> {
  return lowerUserSessions(db, userId, { acr: rateMethods([]), now })
}
