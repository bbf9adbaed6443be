import type { Database } from '../postgres/database.ts'
import { type IssuedSession, issueSession, type SessionDeps, type SessionOrigin } from '../session/session.ts'
import type { UserRecord } from '../user/user.store.ts'

/** A finished sign-in: who, with which session, and where the person wants to go on. */
export interface SignIn {
  user: UserRecord
  issued: IssuedSession & { refreshToken: string }
  isNewUser: boolean
  redirectUrl: string | null
}

/**
 * Opens the session of a person who has proved to be `user`, in the caller's transaction: by a password here, by a provider
 * in social sign-in. What every such flow answers is built from it by `toLoginPayload` (docs/contract/sessions.md#login-payload).
 * Undefined when the user is disabled or deleted, be it a moment ago.
 */
export async function signIn(
  deps: SessionDeps,
  db: Database,
  input: { user: UserRecord; origin: SessionOrigin; isNewUser: boolean; redirectUrl: string | null; now: Date },
): Promise<SignIn | undefined> {
  const { user, origin, isNewUser, redirectUrl, now } = input
  const issued = await issueSession(deps, db, { userId: user.id, origin, now })
  if (!issued) return undefined
  if (issued.refreshToken === null) throw new Error('the session of a sign-in can be refreshed')
  return { user, issued: { ...issued, refreshToken: issued.refreshToken }, isNewUser, redirectUrl }
}
