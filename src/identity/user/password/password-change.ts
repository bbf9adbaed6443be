import type { SessionId, UserId } from '../../../base/id.ts'
import { invalidField, notFound, Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { endUserApiKeys } from '../../access/api-key.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { checkNewPassword } from '../../password/password-rule.ts'
import { endUserAccess } from '../../session/session.ts'
import { chargeOwnAttempt, forgiveAttempt, type UserAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import { findOwnCredentials, lockOwnCredentials, setPasswordHash } from './own-password.store.ts'

/** A change of one's own password. */
export interface PasswordChange {
  currentPassword: string
  newPassword: string
  keepApiKeys: boolean
  keepApps: boolean
  caller: Caller
  address: string
  now: Date
}

/** A change whose current password was checked, before anything is written. */
export type CheckedChange =
  | { kind: 'refused'; problem: Problem }
  | { kind: 'correct'; attempt: UserAttempt; presentHash: string; passwordHash: string; sessionId: SessionId }

/** Whether a user has a password. */
export async function hasOwnPassword(db: Database, userId: UserId): Promise<boolean> {
  return ((await findOwnCredentials(db, { userId }))?.passwordHash ?? null) !== null
}

/** Numbers of sessions and API keys revoked by a change. */
export interface EndedTokens {
  sessions: number
  apiKeys: number
}

/**
 * Checks a change of one's own password (docs/contract/sessions.md#changing-a-password). A wrong current password
 * counts as a failed sign-in, before it is checked, so that a stolen session cannot guess it. Runs outside any
 * transaction: hashing takes time. Throws 409 for an API key and for a user without a password, 422 for a new password
 * that breaks a rule.
 */
export async function checkPasswordChange(
  { passwords }: PasswordDeps,
  db: Database,
  change: PasswordChange,
): Promise<CheckedChange> {
  const { caller, address, now, currentPassword, newPassword } = change
  if (caller.sessionId === null)
    throw new Problem('conflict', 'An API key cannot change the password of its owner. Sign in and use the session.')
  const user = await findOwnCredentials(db, { userId: caller.userId })
  if (!user) throw notFound('user')
  if (user.passwordHash === null)
    throw new Problem('conflict', 'You have no password yet. Ask for a reset link by mail to set one.')
  checkNewPassword(newPassword, { path: 'new_password', owner: user })
  const attempt = { userId: caller.userId, address, now }
  const until = await chargeOwnAttempt(db, attempt)
  if (until) return { kind: 'refused', problem: buildThrottled(until, now) }
  if (!(await passwords.isCorrect(currentPassword, user.passwordHash)))
    return { kind: 'refused', problem: buildWrongPassword('wrong_password') }
  const passwordHash = await passwords.hash(newPassword)
  return { kind: 'correct', attempt, presentHash: user.passwordHash, passwordHash, sessionId: caller.sessionId }
}

function buildWrongPassword(reason: string): Problem {
  const { detail, errors = [] } = invalidField('current_password', 'wrong_password', 'is not your current password')
  return new Problem('validation_failed', detail, { errors, reason })
}

/**
 * Sets the new password of a checked change, in the caller's transaction: revokes the other sessions of the user,
 * unless `keepApps` its apps, and unless `keepApiKeys` its API keys. A password changed since the check is a refusal.
 */
export async function changeOwnPassword(
  tx: Database,
  { change, checked }: { change: PasswordChange; checked: CheckedChange },
): Promise<EndedTokens | { problem: Problem }> {
  if (checked.kind === 'refused') return { problem: checked.problem }
  const { caller, keepApiKeys, keepApps, now } = change
  const { userId } = caller
  const kept = checked.sessionId
  const present = await lockOwnCredentials(tx, { userId, keepApps, kept })
  if (present?.passwordHash !== checked.presentHash) return { problem: buildWrongPassword('changed_meanwhile') }
  await setPasswordHash(tx, { userId, passwordHash: checked.passwordHash, verifiedAt: null, now })
  await endUserAccess(tx, { userId, keepApps, kept, now })
  if (!keepApiKeys) await endUserApiKeys(tx, { userId, now })
  await forgiveAttempt(tx, checked.attempt)
  return { sessions: present.endingSessions, apiKeys: keepApiKeys ? 0 : present.apiKeys }
}
