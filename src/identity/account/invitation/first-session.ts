import type { Database } from '../../../postgres/statement/database.ts'
import { isClosedFor } from '../../connected/connected-user.ts'
import { type IssuedSession, openLockedSession, type SessionDeps, type SessionOrigin } from '../../session/session.ts'
import type { Accepted } from './invitation-acceptance.ts'

/**
 * Opens the first session of a user whom an invitation has just registered, in the transaction of the acceptance: the link
 * proved the address, and the password is new. Undefined where the account signs such members in by a connection alone.
 */
export async function openFirstSession(
  deps: SessionDeps,
  tx: Database,
  input: { accepted: Accepted; origin: SessionOrigin; now: Date },
): Promise<(IssuedSession & { refreshToken: string }) | undefined> {
  const { accepted, origin, now } = input
  const { invitation, member } = accepted
  if (await isClosedFor(tx, { account: invitation.account, email: invitation.email })) return undefined
  const accounts = [{ id: invitation.account, name: invitation.accountName }]
  const opened = { userId: member.userId, accounts, origin, amr: ['pwd'] as const, now }
  const issued = await openLockedSession(deps, tx, opened)
  if (issued.refreshToken === null) throw new Error('the session of a sign-in has no refresh token')
  return { ...issued, refreshToken: issued.refreshToken }
}
