import { Problem } from '../http/problem.ts'
import type { IdMaker, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import {
  findActiveHolders,
  findRoleByName,
  lockRoleByName,
  type RoleId,
  replacePatterns,
  upsertSystemRole,
} from './role.store.ts'

/** Holds everything (docs/contract/identity.md#system-roles). */
const ADMINISTRATOR_ROLE = 'administrator'

/** Given at sign-up; holds for the accounts that the user belongs to (docs/contract/identity.md#system-roles). */
export const MEMBER_ROLE = 'member'

const SYSTEM_ROLES = [
  {
    name: ADMINISTRATOR_ROLE,
    description: 'May do everything.',
    isAccountScoped: false,
    patterns: ['*:*'],
  },
  {
    name: MEMBER_ROLE,
    description: 'Given to everybody. Holds for the accounts that the user belongs to.',
    isAccountScoped: true,
    patterns: ['realtime:auth', 'account:find-one', 'contract:*'],
  },
]

/**
 * Makes sure that the system roles exist (docs/contract/identity.md#system-roles) and hold what they must, in the caller's transaction. Safe at every start, in
 * several processes at once.
 */
export async function ensureSystemRoles(db: Database, deps: { ids: IdMaker; now: Date }): Promise<void> {
  for (const { patterns, ...role } of SYSTEM_ROLES) {
    await upsertSystemRole(db, { ...role, id: deps.ids.next<'role'>(), now: deps.now })
    const { id } = await loadSystemRole(db, role.name)
    await replacePatterns(db, id, patterns)
  }
}

async function loadSystemRole(db: Database, name: string) {
  const role = await findRoleByName(db, name)
  if (!role) throw new Error(`the system role ${name} is missing: ensureSystemRoles runs at every start`)
  return role
}

/** The id of the role `member`. */
export async function loadMemberRoleId(db: Database): Promise<RoleId> {
  return (await loadSystemRole(db, MEMBER_ROLE)).id
}

/** The id of the role `administrator`. */
export async function loadAdministratorRoleId(db: Database): Promise<RoleId> {
  return (await loadSystemRole(db, ADMINISTRATOR_ROLE)).id
}

/** Whether some active user is an administrator (docs/contract/identity.md#first-administrator). */
export async function hasAdministrator(db: Database): Promise<boolean> {
  const role = await findRoleByName(db, ADMINISTRATOR_ROLE)
  return role !== undefined && (await findActiveHolders(db, role.id, 1)).length > 0
}

/**
 * Checks that an active administrator remains when `userId` is disabled, deleted or stripped of the role. Locks the role, so
 * that of two administrators who remove each other at once only one succeeds. Throws 409 `conflict`.
 */
export async function checkAdministratorRemains(db: Database, userId: UserId): Promise<void> {
  const role = await lockRoleByName(db, ADMINISTRATOR_ROLE)
  if (!role) return
  const holders = await findActiveHolders(db, role.id, 2)
  if (holders.length === 1 && holders[0] === userId)
    throw new Problem('conflict', 'This is the last active administrator. Make another one first.')
}
