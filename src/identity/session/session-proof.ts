import type { SessionId, UserId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AuthMethod, rateMethods } from './auth-method.ts'
import type { SessionRecord } from './session.store.ts'
import { lockSession, lowerUserSessions, setSessionProof } from './session-proof.store.ts'

export { lockUser } from './session-proof.store.ts'

/** Records the proof of a second factor (docs/contract/second-factor.md#step-up). Throws 401 for an ended session. */
export async function raiseSession(
  db: Database,
  input: { sessionId: SessionId; methods: readonly AuthMethod[]; now: Date },
): Promise<SessionRecord> {
  const { sessionId, methods, now } = input
  const session = await lockSession(db, { id: sessionId })
  if (session) {
    const amr = [...new Set<string>([...session.amr, ...methods, 'mfa'])]
    const acr = rateMethods(amr)
    await setSessionProof(db, { id: sessionId, amr, acr, now })
    return { ...session, amr, acr, authTime: now, updatedAt: now }
  }
  throw new Problem('unauthenticated', 'The session was revoked during this request.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** Removes the mark of a second factor from every session of a user without factors. */
export function lowerSessions(db: Database, userId: UserId, now: Date): Promise<void> {
  return lowerUserSessions(db, { userId, acr: rateMethods([]), now })
}
