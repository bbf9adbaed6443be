import type { AccountId, IdMaker } from '../../base/id.ts'
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
  endClosedHolders,
  findRole,
  type GivenRole,
  hasConnectedHolder,
  insertRole,
  lockGivenRoles,
  lockRole,
  lockRoleOfHolders,
  type NewRole,
  type RoleChange,
  type RoleId,
  type RoleOfHolders,
  type RoleWithPatterns,
  replacePatterns,
  updateRole,
} from './role.store.ts'
import { MEMBER_ROLE } from './system-roles.ts'

export { assignRoles } from './role.store.ts'

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
  const role = await (options.lock ? lockRole(db, { id }) : findRole(db, id))
  if (!role) throw notFound('role')
  return role
}

/**
 * The role with this id, locked for its deletion or its limit to accounts. Both may close the ways in of its holders, who
 * are locked first. Throws 404, and 409 when it was given meanwhile to a user of whom this holds.
 */
export async function loadRoleOfHolders(db: Database, id: string): Promise<RoleOfHolders> {
  const role = await lockRoleOfHolders(db, { id })
  if (!role) throw notFound('role')
  if (role.closedHolders.some((holder) => !role.lockedHolders.includes(holder)))
    throw new Problem('conflict', 'The holders of the role changed meanwhile. Send the request again.')
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
  input: Omit<NewRole, 'id' | 'isSystem'> & { caller: Caller },
): Promise<RoleWithPatterns> {
  const { caller, ...settings } = input
  const { patterns, isAccountScoped } = settings
  checkPatternsKnown(patterns, deps.listPermissions())
  checkHoldsGrants(caller, listRoleGrants({ patterns, isAccountScoped }), 'create this role')
  if (isAccountScoped) checkPatternsHaveEffect(patterns, deps.listAccountPermissions(), HOLDER)
  try {
    const role = await insertRole(db, { ...settings, id: deps.ids.next<'role'>(), isSystem: false })
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
 * role. For a system role only `requires_second_factor` may change. A role that is limited to accounts ends what the ways
 * in opened that it kept open: `loadRoleOfHolders` loads it. Throws 409 for other changes of a system role, for a taken
 * name, and for a role that is to hold beyond accounts while a connection knows a user with it; 403, 422.
 */
export async function changeRole(
  deps: RoleDeps,
  db: Database,
  input: RoleChange & { role: RoleWithPatterns | RoleOfHolders; caller: Caller },
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
  if (role.isAccountScoped !== changed.isAccountScoped) await changeReach(db, role, { patterns: changed.patterns, now })
  await updateRole(db, role.id, { ...change, now }, toNameConflict)
  return { ...changed, updatedAt: now }
}

/** Does what follows when a locked role is limited to accounts, or no longer is. */
async function changeReach(
  db: Database,
  role: RoleWithPatterns | RoleOfHolders,
  { patterns, now }: { patterns: readonly string[]; now: Date },
): Promise<void> {
  if (role.isAccountScoped) return checkHasNoConnectedHolder(db, role)
  if (!('closedHolders' in role)) throw new TypeError('a role that is limited to accounts is loaded with its holders')
  if (role.closedHolders.length === 0) return
  // Permissions of roles are locked before sessions.
  await replacePatterns(db, { role: role.id, patterns })
  await endClosedHolders(db, { holders: role.closedHolders, role: role.id, now })
}

/** Whom a connection knows operates nothing beyond its account (docs/contract/connections.md#known-users). */
async function checkHasNoConnectedHolder(db: Database, role: RoleWithPatterns): Promise<void> {
  if (await hasConnectedHolder(db, { id: role.id }))
    throw new Problem(
      'conflict',
      'A user with this role signs in by the connection of an account, and holds roles in it alone. Take the role from ' +
        'such users first, or create another role.',
      { reason: 'connected' },
    )
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

/** Deletes a locked role, and ends what the ways in opened that it kept open. Throws 403, and 409 for a system role. */
export async function deleteRole(
  db: Database,
  input: { role: RoleOfHolders; caller: Caller; now: Date },
): Promise<void> {
  const { role, caller, now } = input
  checkHoldsGrants(caller, listRoleGrants(role), 'delete this role')
  checkNotSystem(role)
  const { closedHolders: holders } = role
  if (holders.length > 0) await endClosedHolders(db, { holders, role: role.id, now })
  await deleteRoleRow(db, { id: role.id })
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

/** The roles of a new user, by name, locked: `member`, and those of `ids`, which `checkGrantableRoles` allows. */
export async function loadRolesOfNewUser(
  db: Database,
  { caller, ids }: { caller: Caller; ids: readonly string[] },
): Promise<RoleId[]> {
  const found = await lockGivenRoles(db, { name: MEMBER_ROLE, ids })
  checkGrantableRoles(found, { caller, ids, held: [], accounts: [] })
  return found.map(({ id }) => id)
}

/** The roles with these ids, for `checkMemberRoles`, locked against changes until the transaction ends. */
export function lockMemberRoles(db: Database, ids: readonly string[]): Promise<GivenRole[]> {
  return lockGivenRoles(db, { name: NO_NAME, ids })
}

/** The account-scoped ones of the roles with these ids, locked against changes until the transaction ends. */
export async function findMemberRoles(db: Database, ids: readonly RoleId[]): Promise<GivenRole[]> {
  return (await lockMemberRoles(db, ids)).filter(({ isAccountScoped }) => isAccountScoped)
}

/** An id that no role has. */
const NO_NAME = ''
