import type { Caller } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, UserId } from '../id.ts'
import { type Database, isUniqueViolation } from '../postgres/database.ts'
import { checkHoldsGrants, listGivenGrants, listRoleGrants } from './delegation.ts'
import { checkPatternsKnown } from './pattern.ts'
import {
  deleteRoleRow,
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

/** The role with this id; with `lock`, nobody else changes or gives it until the transaction ends. Throws 404. */
export async function loadRole(db: Database, id: string, options: { lock?: boolean } = {}): Promise<RoleWithPatterns> {
  const [role] = await findRoles(db, [id], options.lock ? { lock: 'change' } : {})
  if (!role) throw notFound('role')
  return role
}

function toNameConflict(error: unknown): unknown {
  if (!isUniqueViolation(error, 'role_name_key')) return error
  return new Problem('conflict', 'Another role has this name. Take another one.')
}

/** Creates a role that holds no more than its maker does (docs/contract/identity.md#system-roles). */
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
  checkHoldsGrants(caller, listRoleGrants({ patterns, isAccountScoped }), 'make this role')
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
 * Changes a locked role. The caller holds what the role holds before and after. Returns undefined when nothing differs.
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
): Promise<RoleWithPatterns | undefined> {
  const { role, caller, now, ...change } = input
  if (change.patterns !== undefined) checkPatternsKnown(change.patterns, deps.listPermissions())
  const changed = { ...role, ...change, patterns: [...(change.patterns ?? role.patterns)].sort() }
  checkHoldsGrants(caller, [...listRoleGrants(role), ...listRoleGrants(changed)], 'change this role')
  checkNotSystem(role)
  if (isSameRole(role, changed)) return undefined
  try {
    const updated = await updateRole(db, role.id, { ...change, now })
    if (change.patterns !== undefined) await replacePatterns(db, role.id, change.patterns)
    return { ...updated, patterns: changed.patterns }
  } catch (error) {
    throw toNameConflict(error)
  }
}

function isSameRole(one: RoleWithPatterns, other: RoleWithPatterns): boolean {
  return (
    one.name === other.name &&
    one.description === other.description &&
    one.isAccountScoped === other.isAccountScoped &&
    [...one.patterns].sort().join() === [...other.patterns].sort().join()
  )
}

/** Deletes a locked role; its users lose it with the next request. Throws 403, and 409 for a system role. */
export async function deleteRole(db: Database, input: { role: RoleWithPatterns; caller: Caller }): Promise<void> {
  const { role, caller } = input
  checkHoldsGrants(caller, listRoleGrants(role), 'delete this role')
  checkNotSystem(role)
  await deleteRoleRow(db, role.id)
}

/**
 * Checks that `caller` may give the roles with these ids to a user who belongs to `accounts`, and returns them, locked so
 * that they stay what they are until the transaction ends. Roles that the user has already (`held`) are not given. The
 * role `member` is free for a user without an account: everybody has it, and it gives nothing there.
 * Throws 422 at `roles.<index>` for one that does not exist, 403 for one that holds more than the caller.
 */
export async function checkGrantableRoles(
  db: Database,
  input: { caller: Caller; ids: readonly string[]; held: readonly RoleId[]; accounts: readonly AccountId[] },
): Promise<RoleId[]> {
  const { caller, ids, held, accounts } = input
  const found = new Map((await findRoles(db, ids, { lock: 'give' })).map((role) => [role.id as string, role]))
  const roles = ids.map((id, index) => {
    const role = found.get(id)
    if (!role) throw invalidField(`roles.${index}`, 'unknown_role', 'There is no role with this id.')
    return role
  })
  for (const role of roles) {
    const isFree = role.isSystem && role.name === MEMBER_ROLE && accounts.length === 0
    if (isFree || held.includes(role.id)) continue
    checkHoldsGrants(caller, listGivenGrants(role, accounts), `give the role ${role.name}`)
  }
  return roles.map(({ id }) => id)
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
