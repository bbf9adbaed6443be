import type { AccountId } from '../../../base/id.ts'
import { notFound } from '../../../http/problem/problem.ts'
import { matchesPattern } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { RoleId } from '../../access/role.store.ts'
import { findRolesAndMemberships, type HeldRole, type RolesAndMemberships } from './effective-access.store.ts'

/** Dependencies of the permissions of a user. */
export interface EffectiveAccessDeps {
  /** The permissions of all routes. */
  listPermissions: () => readonly string[]
  /** Permissions with an effect when limited to some accounts. */
  listAccountPermissions: () => readonly string[]
}

/** Source of a permission: a role, the matching pattern of the role, and its scope. */
export interface Reason {
  role: RoleId
  roleName: string
  pattern: string
  /** `everywhere`, in the accounts of the user by a role of the user, or by a role of each of these memberships. */
  place: 'everywhere' | 'accounts' | 'memberships'
  /** The accounts of its scope; empty for `everywhere`. */
  accounts: AccountId[]
  requiresSecondFactor: boolean
}

/** A permission of a user, with every source. */
export interface EffectivePermission {
  permission: string
  reasons: Reason[]
}

/** Effective permissions of a user, with their reasons (docs/contract/identity.md#effective-permissions). */
export interface EffectiveAccess extends RolesAndMemberships {
  permissions: EffectivePermission[]
}

/** Effective permissions of the user with this id, with their reasons. Throws 404. */
export async function loadEffectiveAccess(
  deps: EffectiveAccessDeps,
  db: Database,
  id: string,
): Promise<EffectiveAccess> {
  const held = await findRolesAndMemberships(db, { id })
  if (!held) throw notFound('user')
  const permissions = listEffectivePermissions(held, {
    all: deps.listPermissions(),
    ofAccounts: deps.listAccountPermissions(),
  })
  return { ...held, permissions }
}

/**
 * The permissions that follow from roles and memberships, in the order of `known.all`. An account-scoped role has an effect
 * for the permissions of `known.ofAccounts` only, and for a user with an account only. Pure.
 */
export function listEffectivePermissions(
  held: Pick<RolesAndMemberships, 'roles' | 'memberships'>,
  known: { all: readonly string[]; ofAccounts: readonly string[] },
): EffectivePermission[] {
  const sources = listSources(held)
  const ofAccounts = new Set(known.ofAccounts)
  return known.all.flatMap((permission) => {
    const reasons = sources.flatMap(({ role, place, accounts }): Reason[] => {
      const pattern = role.patterns.find((pattern) => matchesPattern(pattern, permission))
      if (pattern === undefined || (place !== 'everywhere' && !ofAccounts.has(permission))) return []
      const { id, name, requiresSecondFactor } = role
      return [{ role: id, roleName: name, pattern, place, accounts, requiresSecondFactor }]
    })
    return reasons.length > 0 ? [{ permission, reasons }] : []
  })
}

interface Source extends Pick<Reason, 'place' | 'accounts'> {
  role: HeldRole
}

/** Each role with its scope: a role of several memberships is one source. */
function listSources({ roles, memberships }: Pick<RolesAndMemberships, 'roles' | 'memberships'>): Source[] {
  const joined = memberships.map(({ account }) => account)
  const own = roles.flatMap((role): Source[] => {
    if (!role.isAccountScoped) return [{ role, place: 'everywhere', accounts: [] }]
    return joined.length > 0 ? [{ role, place: 'accounts', accounts: joined }] : []
  })
  const ofMemberships = new Map<RoleId, Source>()
  for (const { account, roles: given } of memberships)
    for (const role of given.filter(({ isAccountScoped }) => isAccountScoped)) {
      const known = ofMemberships.get(role.id)
      if (known) known.accounts.push(account)
      else ofMemberships.set(role.id, { role, place: 'memberships', accounts: [account] })
    }
  return [...own, ...ofMemberships.values()]
}
