import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PasswordDeps } from '../password/password.ts'
import { checkNewPassword } from '../password/password-rule.ts'
import { findUserOfAddress, type UserWithRoles } from '../user-record/user.store.ts'
import { registerUser, type UserDeps } from './user.ts'

export { proveAddress } from './proof/proof-token.store.ts'

/** The id of the user with this address, active or not. */
export async function findUserId(db: Database, email: string): Promise<UserId | undefined> {
  return (await findUserOfAddress(db, { email }))?.id
}

/** Checks the first password of an invited user and hashes it. Throws a 422 on `password`. */
export async function hashFirstPassword(
  { passwords }: PasswordDeps,
  { password, owner }: { password: string; owner: { email: string; name: string | null } },
): Promise<string> {
  checkNewPassword(password, { path: 'password', owner })
  return passwords.hash(password)
}

/** Creates a user whose address an invitation proved. Throws 409 when the address is taken by now. */
export function registerInvitedUser(
  deps: UserDeps,
  tx: Database,
  input: { email: string; name: string | null; passwordHash: string; now: Date },
): Promise<UserWithRoles> {
  return registerUser(deps, tx, { ...input, emailVerifiedAt: input.now })
}
