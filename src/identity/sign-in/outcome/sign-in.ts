import type { UserId } from '../../../base/id.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AuthMethod } from '../../session/auth-method.ts'
import type { ProvenByConnection } from '../../session/by-connection.ts'
import { type IssuedSession, issueSession, type SessionDeps, type SessionOrigin } from '../../session/session.ts'
import type { UserRecord } from '../../user-record/user.store.ts'

/** A finished sign-in: the user, the session and the place to continue. */
export interface SignIn {
  user: UserRecord
  issued: IssuedSession & { refreshToken: string }
  isNewUser: boolean
  redirectUrl: string | null
}

/** A refused sign-in: the problem for the caller, and the user that it named, where there is one. */
export interface RefusedSignIn {
  problem: Problem
  userId: UserId | null
}

/**
 * Opens the session of an authenticated user, in the caller's transaction. Every sign-in flow ends here;
 * `toLoginPayload` builds its answer (docs/contract/sessions.md#login-payload). Undefined when, since the check, the
 * user was disabled or deleted, the password was changed, or the access of the user was revoked. Throws 403
 * `connection_required` for a user whose account closed this way in.
 */
export async function signIn(
  deps: SessionDeps,
  db: Database,
  input: {
    user: UserRecord
    /** The hash that the password was checked against, for a sign-in with a password. */
    passwordHash?: string
    origin: SessionOrigin
    begunAt?: Date
    /** The connection that proved the user, and what it limits. */
    byConnection?: ProvenByConnection
    /** The methods of this sign-in (RFC 8176). */
    amr?: readonly AuthMethod[]
    /** The assurance, where `amr` does not say it. */
    acr?: string
    /** Time at which the user proved its identity. Default: now. */
    authTime?: Date
    isNewUser: boolean
    redirectUrl: string | null
    now: Date
  },
): Promise<SignIn | undefined> {
  const { user, isNewUser, redirectUrl, ...rest } = input
  const issued = await issueSession(deps, db, { userId: user.id, ...rest })
  if (!issued) return undefined
  if (issued.refreshToken === null) throw new Error('the session of a sign-in has no refresh token')
  return { user, issued: { ...issued, refreshToken: issued.refreshToken }, isNewUser, redirectUrl }
}
