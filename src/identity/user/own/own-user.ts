import type { SessionId } from '../../../base/id.ts'
import { invalidField, notFound, Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { checkShownName } from '../../../http/shape/shown-name.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { ACCOUNT_ADMIN_ROLE } from '../../access/system-roles.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { applyUserChange, type UserWithRoles, updateUser } from '../../user-record/user.store.ts'
import { deleteUser, loadManagedUser } from '../user.ts'
import { findOwnUser, type OwnUser } from './email-change.store.ts'
import { listAdministeredAccounts, lockAdministeredAccounts } from './own-user.store.ts'

/** The session of a caller. Throws 409 for an API key and for an app: only the user itself changes its own data. */
export function readOwnSession({ sessionId, clientId }: Pick<Caller, 'sessionId' | 'clientId'>): SessionId {
  if (sessionId !== null && clientId === null) return sessionId
  throw new Problem('conflict', 'Only the user itself may do this. Sign in and use the session.')
}

/** The user of the caller with its open change of the address. Throws 404. */
export async function loadOwnUser(db: Database, { caller, now }: { caller: Caller; now: Date }): Promise<OwnUser> {
  const user = await findOwnUser(db, { id: caller.userId, now })
  if (!user) throw notFound('user')
  return user
}

/** Changes the name of the caller (docs/contract/identity.md#own-profile). Throws 409 for an API key, 422. */
export async function changeOwnName(
  db: Database,
  { caller, name, now }: { caller: Caller; name: string | null; now: Date },
): Promise<{ before: UserWithRoles; after?: UserWithRoles }> {
  readOwnSession(caller)
  if (name !== null) checkShownName(name)
  const before = await loadManagedUser(db, caller.userId)
  if (name === before.name) return { before }
  const change = { name, now }
  await updateUser(db, before.id, change)
  return { before, after: applyUserChange(before, change) }
}

const buildAccountsChanged = () =>
  new Problem('conflict', 'Your accounts changed meanwhile. Try again.', { reason: 'accounts_changed' })

/**
 * Deletes the user of the caller as an administrator would (docs/contract/identity.md#own-deletion). `email` is the
 * typed confirmation. Throws 409 for an API key, for the last administrator, and for the only administrator of an
 * account; 422 for another address.
 */
export async function deleteOwnUser(
  db: Database,
  { caller, email, now }: { caller: Caller; email: string; now: Date },
): Promise<UserWithRoles> {
  readOwnSession(caller)
  const { userId } = caller
  const locked = await lockAdministeredAccounts(db, { userId, role: ACCOUNT_ADMIN_ROLE })
  const user = await loadManagedUser(db, userId, { roles: [] })
  if (foldEmail(email) !== foldEmail(user.email))
    throw invalidField('email', 'not_your_address', 'is not your e-mail address. Type it to confirm the deletion')
  for (const account of await listAdministeredAccounts(db, { userId, role: ACCOUNT_ADMIN_ROLE })) {
    if (!locked.includes(account.id)) throw buildAccountsChanged()
    if (!account.hasOther) {
      const text = `You are the only administrator of the account ${account.name}. Give the role ${ACCOUNT_ADMIN_ROLE} to another member, or delete the account first.`
      throw new Problem('conflict', text, { reason: 'last_account_administrator' })
    }
  }
  return deleteUser(db, { user, caller, now })
}
