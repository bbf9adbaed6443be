import type { AccountId, IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { StoredSecrets } from '../../delivery/post/reencrypt.ts'
import { notFound, Problem } from '../../http/problem/problem.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import { type Caller, includesAccount } from '../../http/shape/caller.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { checkShownName } from '../../http/shape/shown-name.ts'
import type { CallbackRules } from '../../outbound/guard/callback-url.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { checkHoldsGrants } from '../access/delegation.ts'
import type { RoleId } from '../access/role.store.ts'
import { checkMemberRoles, lockMemberRoles } from '../access/role.ts'
import { ADMIN_PATTERNS } from '../access/system-roles.ts'
import type { AccountTarget } from '../account/account.store.ts'
import {
  endClosedAccess,
  endConnectionAccess,
  endNarrowing,
  lockConnectionUsers,
  lockJoinsOf,
} from '../connected/connected-user.ts'
import type { CreateConnectionBody, UpdateConnectionBody } from './connection.schema.ts'
import {
  type ConnectionChange,
  type ConnectionRecord,
  changeLockedConnection,
  countConnectionsOf,
  deleteConnectionRow,
  findConnection,
  type GroupRole,
  insertConnection,
  listStaleConnectionSecrets,
  lockConnection,
  replaceConnectionSecret,
} from './connection.store.ts'
import { readKindChange, readNewKind } from './settings-of-kind.ts'

const CONNECTIONS_LIMIT = 10

const DEFAULT_SESSION_HOURS = 24

/** Dependencies of the operations on connections. */
export interface ConnectionDeps {
  ids: IdMaker
  keyring: Pick<Keyring, 'seal'>
  /** Rules for the URL of an issuer: those of callbacks. */
  callbackRules: CallbackRules
}

/** The encryption context of the secret of a connection: a ciphertext of one row does not decrypt on another. */
export const connectionSecretContextOf = (id: string) => `connection:${id}`

type SettingsInput = Static<typeof UpdateConnectionBody>

/** The connection of a path. `closes` locks its account first: a change may close ways in of members. Throws 404. */
export async function loadConnection(
  db: Database,
  { target, id }: { target: AccountTarget; id: string },
  { lock, closes = false }: { lock?: boolean; closes?: boolean } = {},
): Promise<ConnectionRecord> {
  const isInside = includesAccount(target.scope, target.id as AccountId)
  if (isInside && closes) await lockJoinsOf(db, { account: target.id as AccountId })
  const found = isInside ? await (lock ? lockConnection : findConnection)(db, { id }) : undefined
  if (!found || found.account !== target.id) throw notFound('connection')
  return found
}

/** Checks that a caller holds all of an account's administrator: a connection signs in any member. Throws 403. */
export function checkMayConnect(caller: Caller, account: AccountId): void {
  const grants = ADMIN_PATTERNS.map((pattern) => ({ pattern, place: account }))
  checkHoldsGrants(caller, grants, 'decide on the connections of this account')
}

/** Creates a connection. Throws 404, 403 for a caller who holds less than it gives, 422, 409 `limit_reached`. */
export async function createConnection(
  deps: ConnectionDeps,
  db: Database,
  input: {
    target: AccountTarget
    body: Static<typeof CreateConnectionBody>
    caller: Caller
    now: Date
  },
): Promise<ConnectionRecord> {
  const { target, body, caller, now } = input
  const account = target.id as AccountId
  const living = includesAccount(target.scope, account) ? await countConnectionsOf(db, account) : undefined
  if (living === undefined) throw notFound('account')
  checkMayConnect(caller, account)
  checkShownName(body.name)
  const { columns, secret } = readNewKind(deps, body)
  if (living >= CONNECTIONS_LIMIT)
    throw new Problem('limit_reached', `An account has at most ${CONNECTIONS_LIMIT} connections. Delete one first.`)
  const groupRoles = toGroupRoles(body.group_roles)
  const defaultRole = (body.default_role ?? null) as RoleId | null
  await checkRoles(db, { account, caller, before: [], after: listRoles(groupRoles, defaultRole) })
  const id = deps.ids.next<'connection'>()
  return insertConnection(db, {
    id,
    account,
    kind: body.kind,
    name: body.name,
    isEnabled: body.is_enabled ?? true,
    isEnforced: body.is_enforced ?? false,
    isJit: body.is_jit ?? false,
    defaultRole,
    groupRoles,
    sessionHours: body.session_hours ?? DEFAULT_SESSION_HOURS,
    ...columns,
    secretEncrypted: secret === null ? null : deps.keyring.seal(secret, connectionSecretContextOf(id)),
    by: caller.userId,
    now,
  })
}

/**
 * Changes a connection. Another issuer or client means another provider, whose people the connection does not
 * know. This, and disabling, end the access of its users. `isChanged` is false when nothing differs. Throws
 * 404, 403, 422.
 */
export async function changeConnection(
  deps: ConnectionDeps,
  db: Database,
  input: { target: AccountTarget; id: string; body: SettingsInput; caller: Caller; now: Date },
): Promise<RowChange<ConnectionRecord>> {
  const { body, caller, now } = input
  const closes = body.is_enforced === true || body.is_enabled === true
  const before = await loadConnection(db, input, { lock: true, closes })
  checkMayConnect(caller, before.account)
  const groupRoles = body.group_roles && toGroupRoles(body.group_roles)
  const change = findChange(deps, before, body)
  const isSameGroups = !groupRoles || describeGroups(groupRoles) === describeGroups(before.groupRoles)
  if (isSameGroups && Object.keys(change).length === 0) return { row: before, before, isChanged: false }
  const forgets = change.issuer !== undefined || change.clientId !== undefined
  const isEnd = forgets || change.isEnabled === false
  // Users are locked before roles (`LOCK_ORDER`).
  if (isEnd || isEnforcing(before, change)) await lockConnectionUsers(db, { id: before.id })
  const defaultRole = change.defaultRole === undefined ? before.defaultRole : change.defaultRole
  if (!isSameGroups || change.defaultRole !== undefined)
    await checkRoles(db, {
      account: before.account,
      caller,
      before: listRoles(before.groupRoles, before.defaultRole),
      after: listRoles(groupRoles ?? before.groupRoles, defaultRole),
    })
  if (isEnd) await endConnectionAccess(db, { id: before.id, forgets, now })
  if (isEnforcing(before, change)) await endClosedAccess(db, { id: before.id, spared: caller, now })
  if (!isEnd && before.isEnforced && change.isEnforced === false) await endNarrowing(db, { id: before.id })
  const whole = { ...change, ...(!isSameGroups && { groupRoles }) }
  const by = { by: caller.userId, now }
  return { row: await changeLockedConnection(db, before, whole, by), before }
}

/** Whether a change closes ways in that were open. Pure. */
function isEnforcing(before: ConnectionRecord, change: ConnectionChange): boolean {
  const isEnabled = change.isEnabled ?? before.isEnabled
  const isEnforced = change.isEnforced ?? before.isEnforced
  return isEnabled && isEnforced && !(before.isEnabled && before.isEnforced)
}

/** Deletes a connection with its domains, and ends the access of its users. Throws 404, 403. */
export async function deleteConnection(
  db: Database,
  input: { target: AccountTarget; id: string; caller: Caller; now: Date },
): Promise<ConnectionRecord> {
  const found = await loadConnection(db, input, { lock: true })
  checkMayConnect(input.caller, found.account)
  await endConnectionAccess(db, { id: found.id, forgets: true, now: input.now })
  await deleteConnectionRow(db, { id: found.id })
  return found
}

const toGroupRoles = (given: SettingsInput['group_roles'] = []): GroupRole[] =>
  given.map(({ group, role }) => ({ group, role: role as RoleId }))

const describeGroups = (groupRoles: readonly GroupRole[]) =>
  JSON.stringify([...new Set(groupRoles.map(({ group, role }) => `${role} ${group}`))].sort())

const listRoles = (groupRoles: readonly GroupRole[], defaultRole: RoleId | null): RoleId[] => [
  ...new Set([...groupRoles.map(({ role }) => role), ...(defaultRole === null ? [] : [defaultRole])]),
]

/** Checks that a connection may give roles, as a membership (docs/contract/identity.md#delegation). Throws 403, 422. */
async function checkRoles(
  db: Database,
  { account, caller, before, after }: { account: AccountId; caller: Caller; before: RoleId[]; after: RoleId[] },
): Promise<void> {
  const found = await lockMemberRoles(db, [...new Set([...before, ...after])])
  checkMemberRoles(found, { caller, ids: after, held: before, account })
}

/** The columns that differ. Throws a 422. */
function findChange(deps: ConnectionDeps, before: ConnectionRecord, body: SettingsInput): ConnectionChange {
  const secret = body.oidc?.client_secret
  if (body.name !== undefined) checkShownName(body.name)
  const asked: ConnectionChange = {
    ...(body.name !== undefined && { name: body.name }),
    ...(body.is_enabled !== undefined && { isEnabled: body.is_enabled }),
    ...(body.is_enforced !== undefined && { isEnforced: body.is_enforced }),
    ...(body.is_jit !== undefined && { isJit: body.is_jit }),
    ...(body.default_role !== undefined && { defaultRole: body.default_role as RoleId | null }),
    ...(body.session_hours !== undefined && { sessionHours: body.session_hours }),
    ...readKindChange(deps, before, body),
  }
  const same = before as unknown as Record<string, unknown>
  const differing = Object.entries(asked).filter(
    ([name, value]) => JSON.stringify(same[name]) !== JSON.stringify(value),
  )
  return {
    ...Object.fromEntries(differing),
    ...(secret !== undefined && { secretEncrypted: deps.keyring.seal(secret, connectionSecretContextOf(before.id)) }),
  }
}

/** The secrets of connections, for a new SECRET_KEY. */
export const CONNECTION_SECRETS: StoredSecrets = {
  list: listStaleConnectionSecrets,
  replace: replaceConnectionSecret,
  contextOf: connectionSecretContextOf,
}
