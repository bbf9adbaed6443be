import { revokeUserApiKeys } from '../access/api-key.ts'
import type { RoleId } from '../access/role.store.ts'
import { assignRoles, checkGrantableRoles, checkMayManageUser, listRoleIdsOfUsers } from '../access/role.ts'
import { checkAdministratorRemains, loadAdministratorRoleId, loadMemberRoleId } from '../access/system-roles.ts'
import type { Caller } from '../http/caller.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { IdMaker, SessionId, UserId } from '../id.ts'
import { type Database, isUniqueViolation } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { revokeUserSessions } from '../session/session.ts'
import { hashPassword } from '../sign-in/password.ts'
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

/** The living user with this id. Throws 404. */
export async function loadUser(db: Database, id: string): Promise<UserWithRoles> {
  const user = await findUser(db, id)
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
    password?: string
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
      passwordHash: input.password === undefined ? null : await hashPassword(input.password, deps.random),
      now,
    })
    const roles = [...new Set([await loadMemberRoleId(db), ...(input.roles ?? [])])]
    await assignRoles(db, { userId: user.id, roles, now })
    return { ...user, roles }
  } catch (error) {
    throw toEmailConflict(error)
  }
}

/** Creates a user (D10). Throws 422 for an unknown role, 403 for one that holds more than the caller, 409. */
export async function createUser(
  deps: UserDeps,
  db: Database,
  input: { email: string; name: string | null; password?: string; roles: readonly string[]; caller: Caller; now: Date },
): Promise<UserWithRoles> {
  const { caller, roles, ...rest } = input
  return registerUser(deps, db, { ...rest, roles: await checkGrantableRoles(db, { caller, ids: roles, held: [] }) })
}

/**
 * Changes a user. `roles` is the full list. A new password or address ends all sessions of the user: whoever used the old one
 * must not stay. A new address counts as unverified.
 * Throws 403 when the user or a new role holds more than the caller, 422 for an unknown role, 409 for a taken address or the
 * last administrator.
 */
export async function changeUser(
  deps: UserDeps,
  db: Database,
  input: {
    user: UserWithRoles
    email?: string
    name?: string | null
    password?: string
    roles?: readonly string[]
    caller: Caller
    now: Date
  },
): Promise<UserWithRoles> {
  const { user, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  const isMoved = input.email !== undefined && input.email.toLowerCase() !== user.email.toLowerCase()
  const roles = input.roles && (await replaceRoles(db, { user, ids: input.roles, caller, now }))
  try {
    const changed = await updateUser(db, user.id, {
      ...(input.email !== undefined && { email: input.email }),
      ...(isMoved && { emailVerifiedAt: null }),
      ...(input.name !== undefined && { name: input.name }),
      ...(input.password !== undefined && { passwordHash: await hashPassword(input.password, deps.random) }),
      now,
    })
    if (isMoved || input.password !== undefined) await revokeUserSessions(db, user.id, now)
    return { ...changed, roles: roles ?? user.roles }
  } catch (error) {
    throw toEmailConflict(error)
  }
}

async function replaceRoles(
  db: Database,
  input: { user: UserWithRoles; ids: readonly string[]; caller: Caller; now: Date },
): Promise<RoleId[]> {
  const { user, caller, ids, now } = input
  const roles = await checkGrantableRoles(db, { caller, ids, held: user.roles })
  const administrator = await loadAdministratorRoleId(db)
  if (user.roles.includes(administrator) && !roles.includes(administrator)) await checkAdministratorRemains(db, user.id)
  await assignRoles(db, { userId: user.id, roles, now })
  return roles
}

async function updateManaged(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; change: UserChange },
): Promise<UserWithRoles> {
  const { user, caller, change } = input
  await checkMayManageUser(db, caller, user.id)
  if (change.isActived === false || change.deletedAt !== undefined) await checkAdministratorRemains(db, user.id)
  return { ...(await updateUser(db, user.id, change)), roles: user.roles }
}

/**
 * Disables a user: with the next request in any process the user is nobody (D11), and enabling brings no session back.
 * A user who is disabled already stays so, and nothing has changed (undefined). Throws 409 for the last administrator.
 */
export async function disableUser(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  if (!user.isActived) return undefined
  const disabled = await updateManaged(db, { user, caller, change: { isActived: false, now } })
  await revokeUserSessions(db, user.id, now)
  return disabled
}

/**
 * Enables a user. Its API keys serve again; it signs in anew. A user who is enabled already stays so, and nothing has
 * changed (undefined).
 */
export async function enableUser(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; now: Date },
): Promise<UserWithRoles | undefined> {
  const { user, caller, now } = input
  await checkMayManageUser(db, caller, user.id)
  return user.isActived ? undefined : updateManaged(db, { user, caller, change: { isActived: true, now } })
}

/** Soft-deletes a user: its sessions and keys end, its address is free again. Throws 409 for the last administrator. */
export async function deleteUser(
  db: Database,
  input: { user: UserWithRoles; caller: Caller; now: Date },
): Promise<UserWithRoles> {
  const { user, caller, now } = input
  const deleted = await updateManaged(db, { user, caller, change: { deletedAt: now, now } })
  await revokeUserSessions(db, user.id, now)
  await revokeUserApiKeys(db, user.id, now)
  return deleted
}

/** Signs a user out everywhere. Returns the sessions that ended. */
export async function endUserSessions(
  db: Database,
  input: { userId: UserId; caller: Caller; now: Date },
): Promise<SessionId[]> {
  await checkMayManageUser(db, input.caller, input.userId)
  return revokeUserSessions(db, input.userId, input.now)
}
