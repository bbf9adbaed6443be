import type { Caller } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { IdMaker, UserId } from '../id.ts'
import { type Database, isUniqueViolation } from '../postgres/database.ts'
import { checkHoldsPatterns, checkPatternsKnown } from './pattern.ts'
import {
  deleteRoleRow,
  findPatternsOfUser,
  findRoles,
  findRolesOfUsers,
  insertRole,
  type RoleId,
  type RoleWithPatterns,
  replacePatterns,
  replaceUserRoles,
  updateRole,
} from './role.store.ts'
import { MEMBER_ROLE } from './system-roles.ts'

/** What the operations on roles use. */
export interface RoleDeps {
  ids: IdMaker
  /** Every permission that some route needs: what a pattern may name. */
  listPermissions: () => readonly string[]
}

/** The role with this id. Throws 404. */
export async function loadRole(db: Database, id: string): Promise<RoleWithPatterns> {
  const [role] = await findRoles(db, [id])
  if (!role) throw notFound('role')
  return role
}

function toNameConflict(error: unknown): unknown {
  if (!isUniqueViolation(error, 'role_name_key')) return error
  return new Problem('conflict', 'Another role has this name. Take another one.')
}

/** Creates a role that holds no more than its maker does (D11). */
export async function createRole(
  deps: RoleDeps,
  db: Database,
  input: {
    name: string
    description: string | null
    patterns: readonly string[]
    isAccountScoped: boolean
    caller: Caller
    now: Date
  },
): Promise<RoleWithPatterns> {
  const { name, description, patterns, isAccountScoped, caller, now } = input
  checkPatternsKnown(patterns, deps.listPermissions())
  checkHoldsPatterns(caller, patterns, 'make this role')
  try {
    const id = deps.ids.next<'role'>()
    const role = await insertRole(db, { id, name, description, isSystem: false, isAccountScoped, now })
    await replacePatterns(db, id, patterns)
    return { ...role, patterns: [...patterns].sort() }
  } catch (error) {
    throw toNameConflict(error)
  }
}

function checkNotSystem(role: RoleWithPatterns): void {
  if (role.isSystem) throw new Problem('conflict', `The role ${role.name} belongs to the service and stays as it is.`)
}

/**
 * Changes a role. What it holds afterwards must be what the caller holds too, whenever the patterns or their reach change.
 * Throws 409 for a system role or a taken name, 403, 422.
 */
export async function changeRole(
  deps: RoleDeps,
  db: Database,
  input: {
    role: RoleWithPatterns
    name?: string
    description?: string | null
    patterns?: readonly string[]
    isAccountScoped?: boolean
    caller: Caller
    now: Date
  },
): Promise<RoleWithPatterns> {
  const { role, caller, patterns, ...change } = input
  if (patterns !== undefined) checkPatternsKnown(patterns, deps.listPermissions())
  if (patterns !== undefined || change.isAccountScoped !== undefined)
    checkHoldsPatterns(caller, patterns ?? role.patterns, 'change this role')
  checkNotSystem(role)
  try {
    const updated = await updateRole(db, role.id, change)
    if (patterns !== undefined) await replacePatterns(db, role.id, patterns)
    return { ...updated, patterns: patterns === undefined ? role.patterns : [...patterns].sort() }
  } catch (error) {
    throw toNameConflict(error)
  }
}

/** Deletes a role; whoever had it loses it with the next request. Throws 409 for a system role. */
export async function deleteRole(db: Database, role: RoleWithPatterns): Promise<void> {
  checkNotSystem(role)
  await deleteRoleRow(db, role.id)
}

/**
 * Checks that `caller` may give the roles with these ids, and returns them. What the user has already (`held`) is not given;
 * and everybody may give `member`: everybody has it.
 * Throws 422 at `roles.<index>` for one that does not exist, 403 for one that holds more than the caller.
 */
export async function checkGrantableRoles(
  db: Database,
  input: { caller: Caller; ids: readonly string[]; held: readonly RoleId[] },
): Promise<RoleId[]> {
  const { caller, ids, held } = input
  const found = new Map((await findRoles(db, ids)).map((role) => [role.id as string, role]))
  const roles = ids.map((id, index) => {
    const role = found.get(id)
    if (!role) throw invalidField(`roles.${index}`, 'unknown_role', 'There is no role with this id.')
    return role
  })
  for (const role of roles) {
    const isFree = held.includes(role.id) || (role.isSystem && role.name === MEMBER_ROLE)
    if (!isFree) checkHoldsPatterns(caller, role.patterns, `give the role ${role.name}`)
  }
  return roles.map(({ id }) => id)
}

/**
 * Checks that `caller` may take over, change or shut out `userId`: only those hold that who hold everywhere what that user
 * holds everywhere. Else the right to edit users would be the right to become an administrator. Oneself is always allowed.
 */
export async function checkMayManageUser(db: Database, caller: Caller, userId: UserId): Promise<void> {
  if (caller.userId === userId && caller.keyPatterns === null) return
  checkHoldsPatterns(caller, await findPatternsOfUser(db, userId), 'change this user')
}

/** Makes `roles` all that a user has. */
export function assignRoles(
  db: Database,
  input: { userId: UserId; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  return replaceUserRoles(db, input)
}

/** The role ids of each of these users, in the order of the roles' names. */
export async function listRoleIdsOfUsers(db: Database, users: readonly UserId[]): Promise<Map<UserId, RoleId[]>> {
  const held = await findRolesOfUsers(db, users)
  return new Map([...held].map(([user, roles]) => [user, roles.map(({ id }) => id)]))
}
