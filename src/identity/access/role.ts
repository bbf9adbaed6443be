import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { type Database, isUniqueViolation } from '../../postgres/statement/database.ts'
import {
  type CallerHoldings,
  checkHoldsGrants,
  listGivenGrants,
  listMemberRoleGrants,
  listRoleGrants,
} from './delegation.ts'
import { checkPatternsHaveEffect, checkPatternsKnown } from './pattern.ts'
import {
  deleteRoleRow,
  findRole,
  type GivenRole,
  insertRole,
  lockGivenRoles,
  lockRole,
  type RoleId,
  type RoleWithPatterns,
  replaceUserRoles,
  updateRole,
} from './role.store.ts'
import { MEMBER_ROLE } from './system-roles.ts'

/** Dependencies of the operations on roles. */
export interface RoleDeps {
  ids: IdMaker
  /** The permissions of all routes: a pattern must match one of them. */
  listPermissions: () => readonly string[]
  /** Permissions with an effect in an account-scoped role. */
  listAccountPermissions: () => readonly string[]
}

/** The role with this id; `lock` blocks other changes and assignments until the transaction ends. Throws 404. */
export async function loadRole(db: Database, id: string, options: { lock?: boolean } = {}): Promise<RoleWithPatterns> {
  const role = await (options.lock ? lockRole(db, id) : findRole(db, id))
  if (!role) throw notFound('role')
  return role
}

/** Start of the refusal of a permission in an account-scoped role. */
const HOLDER = 'An account-scoped role'

function toNameConflict(error: unknown): unknown {
  if (!isUniqueViolation(error, 'role_name_key')) return error
  return new Problem('conflict', 'Another role has this name. Choose another name.')
}

/** Creates a role within the caller's permissions (docs/contract/identity.md#system-roles). */
export async function createRole(
  deps: RoleDeps,
  db: Database,
  input: {
    name: string
    description: string | null
    patterns: readonly string[]
    isAccountScoped: boolean
    requiresSecondFactor: boolean
    caller: Caller
    now: Date
  },
): Promise<RoleWithPatterns> {
  const { name, description, patterns, isAccountScoped, requiresSecondFactor, caller, now } = input
  checkPatternsKnown(patterns, deps.listPermissions())
  checkHoldsGrants(caller, listRoleGrants({ patterns, isAccountScoped }), 'create this role')
  if (isAccountScoped) checkPatternsHaveEffect(patterns, deps.listAccountPermissions(), HOLDER)
  try {
    const id = deps.ids.next<'role'>()
    const role = await insertRole(db, {
      id,
      name,
      description,
      isSystem: false,
      isAccountScoped,
      requiresSecondFactor,
      patterns: [...patterns],
      now,
    })
    return { ...role, patterns: [...patterns].sort() }
  } catch (error) {
    throw toNameConflict(error)
  }
}

function checkNotSystem(role: RoleWithPatterns): void {
  if (role.isSystem) throw new Problem('conflict', `The role ${role.name} is a system role and cannot be changed.`)
}

/**
 * Changes a locked role. The caller must hold the role's permissions before and after. Returns undefined for an equal
 * role. For a system role only `requires_second_factor` may change. Throws 409 for other changes of it and for a taken
 * name, 403, 422.
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
    requiresSecondFactor?: boolean
    caller: Caller
    now: Date
  },
): Promise<RoleWithPatterns | undefined> {
  const { role, caller, now, ...change } = input
  if (change.patterns !== undefined) checkPatternsKnown(change.patterns, deps.listPermissions())
  const changed = { ...role, ...change, patterns: [...(change.patterns ?? role.patterns)].sort() }
  checkHoldsGrants(caller, [...listRoleGrants(role), ...listRoleGrants(changed)], 'change this role')
  const isScopeAsked = change.patterns !== undefined || change.isAccountScoped !== undefined
  if (isScopeAsked && changed.isAccountScoped && !role.isSystem)
    checkPatternsHaveEffect(change.patterns ?? role.patterns, deps.listAccountPermissions(), HOLDER)
  // An operator may demand a second factor of administrators.
  if (Object.keys(change).some((member) => member !== 'requiresSecondFactor')) checkNotSystem(role)
  if (isSameRole(role, changed)) return undefined
  await updateRole(db, role.id, { ...change, now }, toNameConflict)
  return { ...changed, updatedAt: now }
}

function isSameRole(patterns: RoleWithPatterns, other: RoleWithPatterns): boolean {
  return (
    patterns.name === other.name &&
    patterns.description === other.description &&
    patterns.isAccountScoped === other.isAccountScoped &&
    patterns.requiresSecondFactor === other.requiresSecondFactor &&
    [...patterns.patterns].sort().join() === [...other.patterns].sort().join()
  )
}

/** Deletes a locked role, effective with the next request of its users. Throws 403, and 409 for a system role. */
export async function deleteRole(db: Database, input: { role: RoleWithPatterns; caller: Caller }): Promise<void> {
  const { role, caller } = input
  checkHoldsGrants(caller, listRoleGrants(role), 'delete this role')
  checkNotSystem(role)
  await deleteRoleRow(db, role.id)
}

/** Facts that the roles of a user are checked against. */
interface RoleGrant {
  caller: Caller
  /** The ids of the wanted roles. */
  ids: readonly string[]
  /** Roles of the user: they need no check. */
  held: readonly RoleId[]
  accounts: readonly AccountId[]
}

/**
 * Checks that `caller` may give the roles `ids` to a user with `accounts`, and returns them. `found` are the existing
 * ones. The role `member` needs no check for a user without an account: every new user has it, without effect. Throws
 * 422 at `roles.<index>` for an unknown one, 403 for one beyond the caller's permissions.
 */
export function checkGrantableRoles(found: readonly GivenRole[], grant: RoleGrant): RoleId[] {
  const { caller, ids, held, accounts } = grant
  const roles = pickRoles(found, ids)
  for (const role of roles) {
    const isFree = role.isSystem && role.name === MEMBER_ROLE && accounts.length === 0
    if (isFree || held.includes(role.id)) continue
    checkHoldsGrants(caller, listGivenGrants(role, accounts), `give the role ${role.name}`)
  }
  return roles.map(({ id }) => id)
}

/** The roles with these ids, in their order. Throws 422 at `roles.<index>` for one that is not among `found`. */
function pickRoles(found: readonly GivenRole[], ids: readonly string[]): GivenRole[] {
  return ids.map((id, index) => {
    const role = found.find((row) => row.id === id)
    if (!role) throw invalidField(`roles.${index}`, 'unknown_role', 'There is no role with this id.')
    return role
  })
}

/**
 * Checks that `caller` may replace the roles `held` of a membership in `account` by those with these ids, and returns
 * the latter. `found` are the existing given and held ones, locked. The caller must hold, in the account, the
 * permissions of each given and each removed role. Throws 422 at `roles.<index>` for a role that does not exist or is
 * not account-scoped, 403.
 */
export function checkMemberRoles(
  found: readonly GivenRole[],
  input: { caller: CallerHoldings; ids: readonly string[]; held: readonly RoleId[]; account: AccountId },
): RoleId[] {
  const { caller, ids, held, account } = input
  const roles = pickRoles(found, ids)
  const globalAt = roles.findIndex((role) => !role.isAccountScoped)
  if (globalAt >= 0)
    throw invalidField(`roles.${globalAt}`, 'not_account_scoped', 'A membership takes account-scoped roles only.')
  for (const role of roles.filter(({ id }) => !held.includes(id)))
    checkHoldsGrants(caller, listMemberRoleGrants(role, account), `give the role ${role.name}`)
  for (const role of found.filter(({ id }) => held.includes(id) && !ids.includes(id)))
    checkHoldsGrants(caller, listMemberRoleGrants(role, account), `take the role ${role.name}`)
  return roles.map(({ id }) => id)
}

/**
 * The roles of a new user, by name: `member` and those of `ids`, which `checkGrantableRoles` allows. They are locked against
 * changes until the transaction ends.
 */
export async function loadRolesOfNewUser(
  db: Database,
  { caller, ids }: { caller: Caller; ids: readonly string[] },
): Promise<RoleId[]> {
  const found = await lockGivenRoles(db, MEMBER_ROLE, ids)
  checkGrantableRoles(found, { caller, ids, held: [], accounts: [] })
  return found.map(({ id }) => id)
}

/** The roles with these ids, for `checkMemberRoles`, locked against changes until the transaction ends. */
export function lockMemberRoles(db: Database, ids: readonly string[]): Promise<GivenRole[]> {
  return lockGivenRoles(db, NO_NAME, ids)
}

/** The account-scoped ones of the roles with these ids, locked against changes until the transaction ends. */
export async function findMemberRoles(db: Database, ids: readonly RoleId[]): Promise<GivenRole[]> {
  return (await lockMemberRoles(db, ids)).filter(({ isAccountScoped }) => isAccountScoped)
}

/** An id that no role has. */
const NO_NAME = ''

/** Replaces the roles of a user, with the last statement of the transaction. */
export function assignRoles(
  db: Database,
  input: { userId: UserId; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  return replaceUserRoles(db, input)
}
