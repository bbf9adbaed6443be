import type { IdMaker, UserId } from '../../base/id.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { type Database, isUniqueViolation } from '../../postgres/statement/database.ts'
import { endUserApiKeys } from '../access/api-key.ts'
import { checkMayManageUser } from '../access/delegation.ts'
import type { RoleId } from '../access/role.store.ts'
import { assignRoles, checkGrantableRoles, loadRolesOfNewUser } from '../access/role.ts'
import { ADMINISTRATOR_ROLE, checkAdministratorRemains, MEMBER_ROLE } from '../access/system-roles.ts'
import { endUserAccess } from '../session/session.ts'
import { clearLoginThrottle } from '../throttle/login-attempt.ts'
import { foldEmail } from '../user-record/email-key.ts'
import {
  applyUserChange,
  findUser,
  insertCheckedUser,
  insertUser,
  type NewUser,
  type UserChange,
  type UserRecord,
  type UserWithRoles,
  updateUser,
} from '../user-record/user.store.ts'
import { lockUser, lockUserTokens, type ManagedUser } from './managed-user.store.ts'
import { deleteProofTokens } from './proof/proof-token.store.ts'

export { findUserOfAddress } from '../user-record/user.store.ts'

/** The permission to read one user, its e-mail address included. */
export const READ_USER_PERMISSION = 'user:find-one'

/** Dependencies of the operations on users. */
export interface UserDeps {
  ids: IdMaker
}

/** The user with this id, not deleted. Throws 404. */
export async function loadUser(db: Database, id: string): Promise<UserWithRoles> {
  return (await findUser(db, { id })) ?? throwNotFound()
}

/**
 * Locks the user with this id for a change. The lock serializes changes, and protects the roles and memberships of the
 * check. A change that removes roles, or the user itself, checks for the last administrator: `roles` are the new ones,
 * none for a disabled or deleted user. Throws 404.
 */
export async function loadManagedUser(
  db: Database,
  id: string,
  { roles }: { roles?: readonly string[] | undefined } = {},
): Promise<ManagedUser> {
  const asked = { id, roles: roles ?? [], keptRole: roles ? ADMINISTRATOR_ROLE : null }
  return (await lockUser(db, asked)) ?? throwNotFound()
}

function throwNotFound(): never {
  throw notFound('user')
}

function toEmailConflict(error: unknown): unknown {
  if (!isUniqueViolation(error, 'user_email_key')) return error
  return new Problem('conflict', 'Another user has this e-mail address.')
}

/** Creates a user without a permission check, for a sign-up and the command line. Throws 409 for a taken address. */
export async function registerUser(
  deps: UserDeps,
  db: Database,
  input: Pick<NewUser, 'email' | 'now'> & Partial<Omit<NewUser, 'id' | 'roleName'>>,
): Promise<UserWithRoles> {
  const nothing = { emailVerifiedAt: null, name: null, avatarUrl: null, passwordHash: null, roles: [] }
  try {
    return await insertUser(db, { ...nothing, ...input, id: deps.ids.next<'user'>(), roleName: MEMBER_ROLE })
  } catch (error) {
    throw toEmailConflict(error)
  }
}

/** Creates a user (docs/contract/identity.md#tables). Throws 422 for an unknown role, 403 beyond the caller's, 409. */
export async function createUser(
  deps: UserDeps,
  db: Database,
  input: {
    email: string
    name: string | null
    passwordHash?: string
    roles: readonly string[]
    caller: Caller
    now: Date
  },
): Promise<UserWithRoles> {
  const { email, name, passwordHash, caller, now } = input
  const roles = await loadRolesOfNewUser(db, { caller, ids: input.roles })
  const user = { id: deps.ids.next<'user'>(), email, name, passwordHash: passwordHash ?? null, roles, now }
  return insertCheckedUser(db, user, toEmailConflict)
}

/** The changes of a user. `roles` is the full list. */
export interface ChangeUserInput {
  email?: string
  name?: string | null
  /** The hash of the new password, computed outside the transaction. */
  passwordHash?: string
  roles?: readonly string[]
  /** Whether the user's API keys stay valid after a new password. Default false. */
  keepApiKeys?: boolean
  caller: Caller
  now: Date
}

/**
 * Changes a locked user. A new password or address revokes all sessions of the user, a new password also its API keys,
 * because an attacker may have them. So does the loss of the roles by which alone the user kept ways in that its account
 * closed. A new password clears the sign-in throttle. A new address counts as unverified.
 * Returns undefined for an equal user. Throws 403 for a user or new role beyond the caller's permissions, 422 for an
 * unknown role, 409 for a taken address or the last administrator.
 */
export async function changeUser(
  db: Database,
  user: ManagedUser,
  input: ChangeUserInput,
): Promise<UserWithRoles | undefined> {
  const { caller, now } = input
  checkMayManageUser(caller, user.holdings)
  if (input.keepApiKeys !== undefined && input.passwordHash === undefined)
    throw invalidField('keep_api_keys', 'without_password', 'is accepted only together with a new password')
  const roles = input.roles && (await replaceRoles(db, user, { ids: input.roles, caller, now }))
  const change = { ...buildChange(user, input), now }
  if (!roles && Object.keys(change).length === 1) return undefined
  const isClosing = user.isExempt && roles !== undefined && !hasGlobalRole(user)
  if (change.emailVerifiedAt === null || change.passwordHash || isClosing)
    await endUserAccess(db, { userId: user.id, now })
  if (change.passwordHash) await endOldPassword(db, user, input)
  await updateUser(db, user.id, change, toEmailConflict)
  return applyUserChange({ ...user, roles: roles ?? user.roles }, change)
}

/** Whether one of the requested roles holds in more than the accounts of the user. Pure. */
const hasGlobalRole = ({ asked }: ManagedUser) => asked.some(({ isAccountScoped }) => !isAccountScoped)

/** The columns that an update writes: those that differ. */
function buildChange(user: UserRecord, { email, name, passwordHash }: ChangeUserInput): Omit<UserChange, 'now'> {
  const isMoved = email !== undefined && foldEmail(email) !== foldEmail(user.email)
  return {
    ...(email !== undefined && email !== user.email && { email }),
    ...(isMoved && { emailVerifiedAt: null }),
    ...(name !== undefined && name !== user.name && { name }),
    ...(passwordHash !== undefined && { passwordHash }),
  }
}

async function endOldPassword(
  db: Database,
  user: UserRecord,
  { keepApiKeys = false, now }: ChangeUserInput,
): Promise<void> {
  if (!keepApiKeys) await endUserApiKeys(db, { userId: user.id, now })
  await deleteProofTokens(db, { userId: user.id, purpose: 'reset' })
  await clearLoginThrottle(db, user.id)
}

/** Replaces the roles of a user. Undefined when the user has exactly these. */
async function replaceRoles(
  db: Database,
  user: ManagedUser,
  { caller, ids, now }: { ids: readonly string[]; caller: Caller; now: Date },
): Promise<RoleId[] | undefined> {
  const { accounts } = user.holdings
  const roles = checkGrantableRoles(user.asked, { caller, ids, held: user.roles, accounts })
  if (roles.length === user.roles.length && roles.every((role) => user.roles.includes(role))) return undefined
  const isGlobalNew = user.asked.some(({ id, isAccountScoped }) => !isAccountScoped && !user.roles.includes(id))
  if (user.connectedAccount !== null && isGlobalNew)
    throw new Problem('conflict', 'This user signs in by the connection of an account, and holds roles in it alone.', {
      reason: 'connected',
    })
  const administrator = user.roles[user.roleNames.indexOf(ADMINISTRATOR_ROLE)]
  if (administrator && !roles.includes(administrator)) checkAdministratorRemains(user)
  await assignRoles(db, { userId: user.id, roles, now })
  return roles
}

/**
 * Disables a locked user: every process refuses its tokens from the next request on. Revokes its sessions and, unless
 * `keepApiKeys`, its API keys; enabling does not restore them. Returns undefined for a user who is disabled already.
 * Throws 403, and 409 for the last administrator.
 */
export async function disableUser(
  db: Database,
  input: { user: ManagedUser; keepApiKeys?: boolean; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, keepApiKeys = false, caller, now } = input
  checkMayManageUser(caller, user.holdings)
  if (!user.isActived) return undefined
  checkNotLastAdministrator(user)
  await endUserAccess(db, { userId: user.id, now })
  if (!keepApiKeys) await endUserApiKeys(db, { userId: user.id, now })
  return changeLocked(db, user, { isActived: false, now })
}

/** Enables a locked user, who has to sign in again. Returns undefined for a user who is enabled already. Throws 403. */
export async function enableUser(
  db: Database,
  input: { user: ManagedUser; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, caller, now } = input
  checkMayManageUser(caller, user.holdings)
  if (user.isActived) return undefined
  // Also what a process of an older release left.
  await endUserAccess(db, { userId: user.id, now })
  return changeLocked(db, user, { isActived: true, now })
}

/** Soft-deletes a locked user: revokes its sessions and keys, frees its address. Throws 403, 409 for the last administrator. */
export async function deleteUser(
  db: Database,
  input: { user: ManagedUser; caller: Caller; now: Date },
): Promise<UserWithRoles> {
  const { user, caller, now } = input
  checkMayManageUser(caller, user.holdings)
  checkNotLastAdministrator(user)
  await endUserAccess(db, { userId: user.id, now })
  await endUserApiKeys(db, { userId: user.id, now })
  return changeLocked(db, user, { deletedAt: now, now })
}

async function changeLocked(db: Database, user: ManagedUser, change: UserChange): Promise<UserWithRoles> {
  await updateUser(db, user.id, change)
  return applyUserChange(user, change)
}

/** Of a user loaded with `roles: []`. The lock on the user blocks assignments, so it cannot become an administrator. */
function checkNotLastAdministrator(user: ManagedUser): void {
  if (user.roleNames.includes(ADMINISTRATOR_ROLE)) checkAdministratorRemains(user)
}

/** Locks a user, and revokes its sessions and, unless `keepApiKeys`, its API keys. Throws 404, 403. */
export async function endUserTokens(
  db: Database,
  id: string,
  input: { keepApiKeys?: boolean; caller: Caller; now: Date },
): Promise<{ id: UserId; sessions: number; apiKeys: number }> {
  const { keepApiKeys = false, caller, now } = input
  const user = (await lockUserTokens(db, { id })) ?? throwNotFound()
  checkMayManageUser(caller, user.holdings)
  await endUserAccess(db, { userId: user.id, now })
  if (!keepApiKeys) await endUserApiKeys(db, { userId: user.id, now })
  return { id: user.id, sessions: user.sessions, apiKeys: keepApiKeys ? 0 : user.apiKeys }
}
