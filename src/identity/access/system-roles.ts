import type { IdMaker } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findRoleByName, hasActiveHolder, type RoleId, replacePatterns, upsertSystemRole } from './role.store.ts'

/** Holds everything (docs/contract/identity.md#system-roles). */
export const ADMINISTRATOR_ROLE = 'administrator'

/** Assigned at sign-up; applies in the accounts of the user (docs/contract/identity.md#system-roles). */
export const MEMBER_ROLE = 'member'

/** May do everything in its accounts. Role of a membership (docs/contract/identity.md#account-roles), as the next three. */
export const ACCOUNT_ADMIN_ROLE = 'account-admin'
const ACCOUNT_DEVELOPER_ROLE = 'account-developer'
const ACCOUNT_VIEWER_ROLE = 'account-viewer'
const ACCOUNT_PUBLISHER_ROLE = 'account-publisher'

/** Permissions of `member` in the accounts of the user. */
export const MEMBER_PATTERNS = ['realtime:auth', 'account:find-one', 'contract:*']

const DEVELOPER_PATTERNS = [
  'account-limit:find-one',
  'contract:*',
  'webhook:*',
  'webhook-event:*',
  'webhook-dispatch:*',
  'replay-job:*',
  'event:find-all',
  'event:find-one',
  'event-occurrence:*',
]

/** The reads of `account-admin`. A test compares them with the routes. */
const VIEWER_PATTERNS = [
  'account:find-all',
  'account:find-one',
  'account-limit:find-one',
  'account-member:find-all',
  'account-member:find-roles',
  'connection:find-activity',
  'connection:find-all',
  'connection:find-one',
  'connection-domain:find-all',
  'contract:find-all',
  'contract:find-one',
  'webhook:find-all',
  'webhook:find-one',
  'webhook:export',
  'webhook:dashboard',
  'webhook:dashboard-series',
  'webhook:dashboard-webhooks',
  'webhook:dashboard-accounts',
  'webhook:dashboard-breakdown',
  'webhook:dashboard-events',
  'webhook-event:find-all',
  'webhook-event:find-one',
  'webhook-event:find-set',
  'webhook-dispatch:find-all',
  'webhook-dispatch:find-one',
  'webhook-dispatch:export',
  'replay-job:find-all',
  'replay-job:find-one',
  'event:find-all',
  'event:find-one',
  'event-occurrence:find-all',
  'event-occurrence:find-one',
  'event-occurrence:routing',
]

/** Permissions of `account-admin`. Who may decide on the connections of an account holds all of them there. */
export const ADMIN_PATTERNS = [
  'account:*',
  'account-member:*',
  'connection:*',
  'connection-domain:*',
  ...DEVELOPER_PATTERNS,
]

/**
 * Permissions of a portal session as `account-admin`: those of the role except the ones that grant or remove lasting
 * access. The external user is not a user here, and its invitations would outlast the session.
 */
const PORTAL_ADMIN_PATTERNS = [
  'account:find-all',
  'account:find-one',
  'account:update',
  'account-member:find-all',
  'connection:find-all',
  'connection:find-one',
  'connection-domain:find-all',
  ...DEVELOPER_PATTERNS,
]

/** The roles of a portal session, with their patterns (docs/contract/portal.md#roles). */
export const PORTAL_ROLES = {
  [ACCOUNT_ADMIN_ROLE]: PORTAL_ADMIN_PATTERNS,
  [ACCOUNT_DEVELOPER_ROLE]: DEVELOPER_PATTERNS,
  [ACCOUNT_VIEWER_ROLE]: VIEWER_PATTERNS,
} as const satisfies Readonly<Record<string, readonly string[]>>

export type PortalRole = keyof typeof PORTAL_ROLES

/** The roles that the service itself declares. */
export const SYSTEM_ROLES = [
  {
    name: ADMINISTRATOR_ROLE,
    description: 'May do everything.',
    isAccountScoped: false,
    patterns: ['*:*'],
  },
  {
    name: MEMBER_ROLE,
    description: 'Assigned to every new user. Holds in the accounts of the user.',
    patterns: MEMBER_PATTERNS,
  },
  {
    name: ACCOUNT_ADMIN_ROLE,
    description: 'For a membership: may do everything in its account.',
    patterns: ADMIN_PATTERNS,
  },
  {
    name: ACCOUNT_DEVELOPER_ROLE,
    description: 'For a membership: may change contracts and webhooks of its account.',
    patterns: DEVELOPER_PATTERNS,
  },
  {
    name: ACCOUNT_VIEWER_ROLE,
    description: 'For a membership: read access to its account.',
    patterns: VIEWER_PATTERNS,
  },
  {
    name: ACCOUNT_PUBLISHER_ROLE,
    description: 'For a membership: may publish events for its account.',
    patterns: ['event:publish', 'event:find-all', 'event:find-one'],
  },
]

/** Creates or updates the system roles (docs/contract/identity.md#system-roles). Safe in concurrent processes. */
export async function ensureSystemRoles(db: Database, deps: { ids: IdMaker; now: Date }): Promise<void> {
  for (const { patterns, ...role } of SYSTEM_ROLES) {
    await upsertSystemRole(db, { isAccountScoped: true, ...role, id: deps.ids.next<'role'>(), now: deps.now })
    const { id } = await loadSystemRole(db, role.name)
    await replacePatterns(db, { role: id, patterns })
  }
}

async function loadSystemRole(db: Database, name: string) {
  const role = await findRoleByName(db, name)
  if (!role) throw new Error(`the system role ${name} is missing: ensureSystemRoles runs at every start`)
  return role
}

/** The id of the role `administrator`. */
export async function loadAdministratorRoleId(db: Database): Promise<RoleId> {
  return (await loadSystemRole(db, ADMINISTRATOR_ROLE)).id
}

/** Whether some active user is an administrator (docs/contract/identity.md#first-administrator). */
export async function hasAdministrator(db: Database): Promise<boolean> {
  return hasActiveHolder(db, { name: ADMINISTRATOR_ROLE })
}

/**
 * Checks that an active administrator remains besides a locked user that is disabled, deleted or loses the role.
 * `otherHolders` are the others; the role is locked, so that only one of two administrators
 * who remove each other concurrently succeeds. Throws 409 `conflict`.
 */
export function checkAdministratorRemains(user: { isActived: boolean; otherHolders: number | null }): void {
  const { isActived, otherHolders } = user
  if (otherHolders === null) throw new Error('the user was loaded without its question for the last administrator')
  if (isActived && otherHolders === 0)
    throw new Problem('conflict', 'This is the last active administrator. Create another one first.', {
      reason: 'last_administrator',
    })
}
