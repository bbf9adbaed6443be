import { revokeUserApiKeys } from '../access/api-key.ts'
import { checkMayManageUser } from '../access/delegation.ts'
import type { RoleId } from '../access/role.store.ts'
import { assignRoles, checkGrantableRoles, listRoleIdsOfUsers } from '../access/role.ts'
import { checkAdministratorRemains, loadAdministratorRoleId, loadMemberRoleId } from '../access/system-roles.ts'
import type { Caller } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, UserId } from '../id.ts'
import { type Database, isUniqueViolation } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { revokeUserSessions } from '../session/session.ts'
import { clearLoginThrottle } from '../sign-in/login-attempt.ts'
import { findUser, insertUser, type UserChange, type UserRecord, updateUser } from './user.store.ts'

/** What the operations on users use. */
export interface UserDeps {
  ids: IdMaker
  random: Random
}

/** A user with its roles. */
export interface UserWithRoles extends UserRecord {
  roles: RoleId[]
}

/** Adds to each user its roles. */
export async function withRoles(db: Database, users: readonly UserRecord[]): Promise<UserWithRoles[]> {
  const roles = await listRoleIdsOfUsers(
    db,
    users.map(({ id }) => id),
  )
  return users.map((user) => ({ ...user, roles: roles.get(user.id) ?? [] }))
}

/**
 * The living user with this id. A change locks it, so that two changes follow each other, and so that the roles and
 * memberships it is checked against stay what they are. Throws 404.
 */
export async function loadUser(db: Database, id: string, options: { lock?: boolean } = {}): Promise<UserWithRoles> {
  const user = await findUser(db, id, options)
  const [found] = user ? await withRoles(db, [user]) : []
  if (!found) throw notFound('user')
  return found
}

function toEmailConflict(error: unknown): unknown {
  if (!isUniqueViolation(error, 'user_email_key')) return error
  return new Problem('conflict', 'Another user has this e-mail address.')
}

/**
 * Registers a user who is to have `member` and `roles`, without asking whether anybody may: for a sign-up, the command line,
 * and `createUser` after its checks. Throws 409 when the address is taken.
 */
export async function registerUser(
  deps: UserDeps,
  db: Database,
  input: {
    email: string
    emailVerifiedAt?: Date | null
    name?: string | null
    avatarUrl?: string | null
    passwordHash?: string | null
    roles?: readonly RoleId[]
    now: Date
  },
): Promise<UserWithRoles> {
  const { now } = input
  try {
    const user = await insertUser(db, {
      id: deps.ids.next<'user'>(),
      email: input.email,
      emailVerifiedAt: input.emailVerifiedAt ?? null,
      name: input.name ?? null,
      avatarUrl: input.avatarUrl ?? null,
      passwordHash: input.passwordHash ?? null,
      now,
    })
    const roles = [...new Set([await loadMemberRoleId(db), ...(input.roles ?? [])])]
    await assignRoles(db, { userId: user.id, roles, now })
    return { ...user, roles }
  } catch (error) {
    throw toEmailConflict(error)
  }
}

/** Creates a user (docs/contract/identity.md#tables). Throws 422 for an unknown role, 403 for one that holds more than the caller, 409. */
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
  const { caller, roles: ids, ...rest } = input
  const roles = await checkGrantableRoles(db, { caller, ids, held: [], accounts: [] })
  return registerUser(deps, db, { ...rest, roles })
}

/** What a caller may change of a user. `roles` is the full list. */
export interface ChangeUserInput {
  email?: string
  name?: string | null
  /** Of the new password; made outside the transaction. */
  passwordHash?: string
  roles?: readonly string[]
  /** Whether the user's API keys outlive the new password. Default false. */
  keepApiKeys?: boolean
  caller: Caller
  now: Date
}

/**
 * Changes a locked user. A new password or address ends all sessions of the user, a new password also its API keys: the
 * holder of the old one must not stay. A new password clears the sign-in throttle. A new address counts as unverified.
 * Returns undefined when nothing differs.
 * Throws 403 when the user or a new role holds more than the caller, 422 for an unknown role, 409 for a taken address or the
 * last administrator.
 */
export async function changeUser(
  db: Database,
  user: UserWithRoles,
  input: ChangeUserInput,
): Promise<UserWithRoles | undefined> {
  const { caller, now } = input
  const { accounts } = await checkMayManageUser(db, caller, user.id)
  if (input.keepApiKeys !== undefined && input.passwordHash === undefined)
    throw invalidField('keep_api_keys', 'without_password', 'is taken together with a new password only')
  const roles = input.roles && (await replaceRoles(db, { user, ids: input.roles, accounts, caller, now }))
  const change = buildChange(user, input)
  if (!roles && Object.keys(change).length === 0) return undefined
  try {
    const changed = await updateUser(db, user.id, { ...change, now })
    if (change.emailVerifiedAt === null || change.passwordHash) await revokeUserSessions(db, user.id, now)
    if (change.passwordHash) await endOldPassword(db, { changed, before: user.email, ...input })
    return { ...changed, roles: roles ?? user.roles }
  } catch (error) {
    throw toEmailConflict(error)
  }
}

/** The columns that an update writes: those that differ. */
function buildChange(user: UserRecord, { email, name, passwordHash }: ChangeUserInput): Omit<UserChange, 'now'> {
  const isMoved = email !== undefined && email.toLowerCase() !== user.email.toLowerCase()
  return {
    ...(email !== undefined && email !== user.email && { email }),
    ...(isMoved && { emailVerifiedAt: null }),
    ...(name !== undefined && name !== user.name && { name }),
    ...(passwordHash !== undefined && { passwordHash }),
  }
}

async function endOldPassword(
  db: Database,
  input: { changed: UserRecord; before: string; keepApiKeys?: boolean; now: Date },
): Promise<void> {
  const { changed, before, keepApiKeys = false, now } = input
  if (!keepApiKeys) await revokeUserApiKeys(db, changed.id, now)
  for (const email of new Set([before, changed.email])) await clearLoginThrottle(db, email)
}

/** Makes `ids` all roles of a user. Undefined when the user has exactly these. */
async function replaceRoles(
  db: Database,
  input: {
    user: UserWithRoles
    ids: readonly string[]
    accounts: readonly AccountId[]
    caller: Caller
    now: Date
  },
): Promise<RoleId[] | undefined> {
  const { user, caller, ids, accounts, now } = input
  const roles = await checkGrantableRoles(db, { caller, ids, held: user.roles, accounts })
  if (roles.length === user.roles.length && roles.every((role) => user.roles.includes(role))) return undefined
  const administrator = await loadAdministratorRoleId(db)
  if (user.roles.includes(administrator) && !roles.includes(administrator)) await checkAdministratorRemains(db, user.id)
  await assignRoles(db, { userId: user.id, roles, now })
  return roles
}

/**
 * Disables a locked user: from the next request on in every process its tokens are void. Its sessions and, unless
 * `keepApiKeys`, its API keys end, and enabling brings none back. Returns undefined for a user who is disabled already.
 * Throws 403, and 409 for the last administrator.
 */
export async function disableUser(
  db: Database,
  input: { user: UserWithRoles; keepApiKeys?: boolean; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, keepApiKeys = false, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  if (!user.isActived) return undefined
  await checkAdministratorRemains(db, user.id)
  const disabled = await updateUser(db, user.id, { isActived: false, now })
  await revokeUserSessions(db, user.id, now)
  if (!keepApiKeys) await revokeUserApiKeys(db, user.id, now)
  return { ...disabled, roles: user.roles }
}

/** Enables a locked user, who signs in anew. Returns undefined for a user who is enabled already. Throws 403. */
export async function enableUser(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  if (user.isActived) return undefined
  return { ...(await updateUser(db, user.id, { isActived: true, now })), roles: user.roles }
}

/** Soft-deletes a locked user: its sessions and keys end, its address is free. Throws 403, 409 for the last administrator. */
export async function deleteUser(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; now: Date },
): Promise<UserWithRoles> {
  const { user, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  await checkAdministratorRemains(db, user.id)
  const deleted = await updateUser(db, user.id, { deletedAt: now, now })
  await revokeUserSessions(db, user.id, now)
  await revokeUserApiKeys(db, user.id, now)
  return { ...deleted, roles: user.roles }
}

/** Ends all sessions of a locked user and, unless `keepApiKeys`, its API keys. Returns how many of each ended. Throws 403. */
export async function endUserTokens(
  db: Database,
  input: { userId: UserId; keepApiKeys?: boolean; caller: Caller; now: Date },
): Promise<{ sessions: number; apiKeys: number }> {
  const { userId, keepApiKeys = false, caller, now } = input
  await checkMayManageUser(db, caller, userId)
  const sessions = await revokeUserSessions(db, userId, now)
  const apiKeys = keepApiKeys ? [] : await revokeUserApiKeys(db, userId, now)
  return { sessions: sessions.length, apiKeys: apiKeys.length }
}
