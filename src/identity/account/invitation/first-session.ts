import type { Database } from '../../../postgres/statement/database.ts'
import { type IssuedSession, openLockedSession, type SessionDeps, type SessionOrigin } from '../../session/session.ts'
import type { Accepted } from './invitation-acceptance.ts'

/**
 * Opens the first session of a user whom an invitation has just registered, in the transaction of the acceptance: the link
 * proved the address, and the password is new.
 */
export async function openFirstSession(
  deps: SessionDeps,
  tx: Database,
  input: { accepted: Accepted; origin: SessionOrigin; now: Date },
): Promise<IssuedSession & { refreshToken: string }> {
  const { accepted, origin, now } = input
  const { invitation, member } = accepted
  const accounts = [{ id: invitation.account, name: invitation.accountName }]
  const opened = { userId: member.userId, accounts, origin, amr: ['pwd'] as const, now }
  const issued = await openLockedSession(deps, tx, opened)
  if (issued.refreshToken === null) throw new Error('the session of a sign-in has no refresh token')
  return { ...issued, refreshToken: issued.refreshToken }
}
