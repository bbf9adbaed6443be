import type { UserId } from '../../../base/id.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { endUserApiKeys } from '../../access/api-key.ts'
import { hasAdministrator, loadAdministratorRoleId } from '../../access/system-roles.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { findPasswordFault, type PasswordOwner } from '../../password/password-rule.ts'
import { endUserAccess } from '../../session/session.ts'
import { clearLoginThrottle } from '../../throttle/login-attempt.ts'
import { findUserOfAddress, type UserWithRoles, updateUser } from '../../user-record/user.store.ts'
import { lockUserTokens } from '../managed-user.store.ts'
import { registerUser, type UserDeps } from '../user.ts'

export { hasAdministrator }

/** Visible ASCII around one `@`. Catches slips on the command line; the rule of the API is stricter. */
const EMAIL_PATTERN = /^[!-?A-~]+@[!-?A-~]+$/

function refusePassword(password: string, owner: PasswordOwner): { ok: false; error: string } | undefined {
  const fault = findPasswordFault(password, owner)
  return fault && { ok: false, error: `The password ${fault.message}.` }
}

/** Records the change of a user in its transaction. */
type OnChanged = (tx: Database, id: UserId) => Promise<void>

/** An administrator, or the reason for which none was created, with the remedy. `weakness`: of a password taken as given. */
export type AdministratorResult =
  | { ok: true; user: UserWithRoles; weakness: string | undefined }
  | { ok: false; error: string }

/**
 * Creates an administrator (docs/contract/identity.md#first-administrator), for `signalbox admin create` and the first
 * start in development, which takes a common password (`takesWeak`). The address counts as verified, because the operator
 * entered it. Does not promote the user of an address in use. The system roles must exist.
 */
export async function createAdministrator(
  deps: UserDeps & PasswordDeps,
  db: Database,
  input: { email: string; password: string; takesWeak?: boolean; now: Date; onMade?: OnChanged },
): Promise<AdministratorResult> {
  const { email, password, takesWeak = false, now, onMade } = input
  if (!EMAIL_PATTERN.test(email) || email.length > 254)
    return { ok: false, error: 'The e-mail address is not valid. Write it as name@example.com.' }
  const fault = findPasswordFault(password, { email, name: null })
  const isWeak = fault?.code === 'common' || fault?.code === 'personal'
  if (fault && !(takesWeak && isWeak)) return { ok: false, error: `The password ${fault.message}.` }
  const passwordHash = await deps.passwords.hash(password)
  try {
    const user = await inTransaction(db, async (tx) => {
      const roles = [await loadAdministratorRoleId(tx)]
      const made = await registerUser(deps, tx, { email, emailVerifiedAt: now, passwordHash, roles, now })
      await onMade?.(tx, made.id)
      return made
    })
    return { ok: true, user, weakness: fault?.message }
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'conflict') throw error
    const text = `A user with the e-mail address ${email} exists already. Give that user the role administrator, or take another address.`
    return { ok: false, error: text }
  }
}

/** Sets a password, revokes sessions and, unless `keepApiKeys`, API keys, for `signalbox admin password`. */
export async function resetPassword(
  { passwords }: PasswordDeps,
  db: Database,
  input: { email: string; password: string; keepApiKeys?: boolean; now: Date; onSet?: OnChanged },
): Promise<{ ok: true } | { ok: false; error: string }> {
  const { email, password, keepApiKeys = false, now, onSet } = input
  const user = await findUserOfAddress(db, { email })
  if (!user) return { ok: false, error: `There is no user with the e-mail address ${email}.` }
  const refusal = refusePassword(password, user)
  if (refusal) return refusal
  const passwordHash = await passwords.hash(password)
  await inTransaction(db, async (tx) => {
    // A sign-in with the old password holds this lock: its session then exists, and is revoked with the others.
    await lockUserTokens(tx, { id: user.id })
    await updateUser(tx, user.id, { passwordHash, now })
    await endUserAccess(tx, { userId: user.id, now })
    if (!keepApiKeys) await endUserApiKeys(tx, { userId: user.id, now })
    await clearLoginThrottle(tx, user.id)
    await onSet?.(tx, user.id)
  })
  return { ok: true }
}
