import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import { type Caller, findPermissionScope, includesAccount } from '../../http/shape/caller.ts'
import { checkShownName } from '../../http/shape/shown-name.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { endAccountApiKeys, endUserApiKeys } from '../access/api-key.ts'
import { checkMayChangeMember } from '../access/delegation.ts'
import { checkMemberRoles } from '../access/role.ts'
import { endAccessOfAccount, removeMemberOf } from '../connected/connected-user.ts'
import { endUserAccess, leaveAccount } from '../session/session.ts'
import { READ_USER_PERMISSION } from '../user/user.ts'
import {
  type AccountRecord,
  type AccountTarget,
  findAccount,
  insertAccount,
  keepAccount,
  lockForRename,
  renameIfDifferent,
  softDeleteAccount,
  withinScope,
} from './account.store.ts'
import {
  type Candidate,
  insertAccountMember,
  insertFirstMember,
  lockCandidate,
  type NamedAccountMember,
  replaceMemberRoles,
} from './account-member.store.ts'

export { listMembersAmong } from './account-member.store.ts'

/** Dependencies of the operations on accounts. */
export interface AccountDeps {
  ids: IdMaker
  /** Makes the webhooks of a deleted account inactive, in the transaction of the deletion. */
  deactivateWebhooksOf: (db: Database, account: AccountId, change: { by: UserId; now: Date }) => Promise<void>
}

/** The account with this id. Throws 404, also outside the caller's scope, so that ids of other accounts stay unknown. */
export async function loadAccount(db: Database, { id, scope }: AccountTarget): Promise<AccountRecord> {
  const account = await findAccount(db, { id })
  if (!account || !includesAccount(scope, account.id)) throw notFound('account')
  return account
}

/** The account with this id, locked against other changes until the transaction ends. Throws 404. */
export async function lockAccount(db: Database, target: AccountTarget): Promise<AccountRecord> {
  const account = await lockForRename(db, withinScope(target))
  if (!account) throw notFound('account')
  return account
}

/** Checks that the account of a body exists, and locks it until the transaction ends. Throws a 422 on `account`. */
export async function checkAccountExists(db: Database, id: string): Promise<AccountId> {
  const account = await keepAccount(db, { id })
  if (!account) throw invalidField('account', 'unknown_account', 'There is no account with this id, or it was deleted.')
  return account.id
}

/** Creates an account without members. Throws a 422 for an unsafe name. */
export function createAccount(
  deps: Pick<AccountDeps, 'ids'>,
  db: Database,
  input: { name: string; by: UserId | null; now: Date },
): Promise<AccountRecord> {
  checkShownName(input.name)
  return insertAccount(db, { id: deps.ids.next<'account'>(), ...input })
}

/** Creates an account with its first member, for a sign-up (docs/contract/sessions.md#login-payload). */
export async function openAccountFor(
  deps: Pick<AccountDeps, 'ids'>,
  db: Database,
  input: { name: string; userId: UserId; now: Date },
): Promise<AccountRecord> {
  const { name, userId, now } = input
  const account = await createAccount(deps, db, { name, by: userId, now })
  await insertFirstMember(db, { id: deps.ids.next<'account member'>(), account: account.id, userId, now })
  return account
}

/** Changes the name of an account; `isChanged` is false when it is the same. Throws 404, 422 for an unsafe name. */
export async function renameAccount(
  db: Database,
  target: AccountTarget,
  input: { name: string; by: UserId; now: Date },
): Promise<RowChange<AccountRecord>> {
  checkShownName(input.name)
  const renamed = await renameIfDifferent(db, { ...withinScope(target), ...input })
  if (renamed) return { row: renamed, isChanged: true }
  return { row: await loadAccount(db, target), isChanged: false }
}

/**
 * Soft-deletes an account. Its members lose their permissions there with the next request, sessions lose it as their
 * current account, and its webhooks become inactive. Throws 404, also for the second of two concurrent deletions.
 */
export async function deleteAccount(
  deps: Pick<AccountDeps, 'deactivateWebhooksOf'>,
  db: Database,
  input: { target: AccountTarget; by: UserId; now: Date },
): Promise<AccountRecord> {
  const { target, by, now } = input
  const deleted = await softDeleteAccount(db, { ...withinScope(target), by, now })
  if (!deleted) throw notFound('account')
  await endAccessOfAccount(db, { account: deleted.id, now })
  await leaveAccount(db, { account: deleted.id, userId: 'all', now })
  await endAccountApiKeys(db, { account: deleted.id, userId: 'all', now })
  await deps.deactivateWebhooksOf(db, deleted.id, { by, now })
  return deleted
}

/** A change of a membership. */
interface MemberChange {
  target: AccountTarget
  userId: string
  /** The ids of the roles of the membership. */
  roles?: readonly string[]
  caller: Caller
  now: Date
}

/** Adds a user to an account. Throws 404, 422 for an unknown user or role, 403 beyond the caller's permissions, 409. */
export async function addMember(
  deps: Pick<AccountDeps, 'ids'> & JoinDeps,
  db: Database,
  { target, userId: asked, roles: ids = [], caller, now }: MemberChange,
): Promise<NamedAccountMember> {
  const { account, candidate } = await loadCandidate(db, target, { userId: asked, roles: ids })
  if (!candidate.isLiving)
    throw invalidField('user', 'unknown_user', 'There is no user with this id, or it was deleted.')
  checkMayChangeMember(caller, candidate.holdings, { account, action: 'add this member' })
  const roles = checkMemberRoles(candidate.asked, { caller, ids, held: [], account })
  if (candidate.member) throw new Problem('conflict', 'This user is already a member of the account.')
  await endBeforeJoin(db, { ends: checkMayJoin(deps, candidate, account), userId: asked as UserId, now })
  const id = deps.ids.next<'account member'>()
  const member = await insertAccountMember(db, { id, account, userId: asked as UserId, roles, now })
  return showMember({ ...member, email: candidate.email, name: candidate.name }, caller)
}

/** Dependencies of a join. */
export interface JoinDeps {
  /** `SIGN_IN_BY_MAIL`. */
  signInByMail: boolean
}

/** Access that a user loses by joining an account: what it opened by ways in that are not its own from then on. */
export type JoinEnds = 'nothing' | 'access' | 'access-and-keys'

/**
 * Checks that a user may belong to an account beside its others, and decides what ends by that. A connection opens nothing
 * for users of several accounts, so one whom the connection of its only account signs in needs a way in of its own
 * (docs/contract/connections.md#members-of-several-accounts). Throws 409. Pure.
 */
export function checkMayJoin({ signInByMail }: JoinDeps, candidate: Candidate, account: AccountId): JoinEnds {
  const others = candidate.holdings.accounts.filter((other) => other !== account)
  if (others.length === 0) return candidate.isClosedThere ? 'access' : 'nothing'
  const isOpenedByConnection = candidate.isConnectedElsewhere || candidate.isClosedElsewhere
  if (others.length > 1 || !isOpenedByConnection) return 'nothing'
  if (candidate.hasPassword || (signInByMail && candidate.isEmailVerified)) return 'access-and-keys'
  throw new Problem(
    'conflict',
    'This user signs in by the connection of its account alone. To belong to another one, it needs a password or a verified address for sign-ins by mail.',
    { reason: 'no_own_way_in' },
  )
}

/** Ends what a locked user loses by joining an account. */
export async function endBeforeJoin(
  db: Database,
  { ends, userId, now }: { ends: JoinEnds; userId: UserId; now: Date },
): Promise<void> {
  if (ends === 'nothing') return
  await endUserAccess(db, { userId, now })
  if (ends === 'access-and-keys') await endUserApiKeys(db, { userId, now })
}

/** Removes a member, and clears the account in its sessions. Throws 404, 403 beyond the caller's permissions there. */
export async function removeMember(
  db: Database,
  { target, userId: asked, caller, now }: MemberChange,
): Promise<NamedAccountMember> {
  const { account, candidate } = await loadCandidate(db, target, { userId: asked, roles: [] })
  checkMayChangeMember(caller, candidate.holdings, { account, action: 'remove this member' })
  const { member } = candidate
  if (!member) throw new Problem('not_found', 'This user is not a member of the account.')
  // Memberships are locked before sessions (`LOCK_ORDER`).
  await removeMemberOf(db, { userId: member.userId, account, now })
  await leaveAccount(db, { account, userId: member.userId, now })
  await endAccountApiKeys(db, { account, userId: member.userId, now })
  return showMember({ ...member, email: candidate.email, name: candidate.name }, caller)
}

/**
 * Replaces the roles of a membership; `isChanged` is false for equal roles. The change takes effect with the next
 * request of the user. Throws 404 for a user who is not a member, 422 for an unknown or global role, 403 for a given or
 * removed role beyond the caller's permissions there.
 */
export async function changeMemberRoles(
  db: Database,
  { target, userId: asked, roles: ids = [], caller, now }: MemberChange,
): Promise<{ member: NamedAccountMember; before: NamedAccountMember; isChanged: boolean }> {
  const { account, candidate } = await loadCandidate(db, target, { userId: asked, roles: ids })
  const { member } = candidate
  if (!member) throw new Problem('not_found', 'This user is not a member of the account.')
  const named = { ...member, email: candidate.email, name: candidate.name }
  const roles = checkMemberRoles(candidate.asked, { caller, ids, held: member.roles, account })
  const isSame = roles.length === member.roles.length && roles.every((role) => member.roles.includes(role))
  const before = showMember(named, caller)
  if (isSame) return { member: before, before, isChanged: false }
  await replaceMemberRoles(db, { member, roles, now })
  return { member: showMember({ ...named, roles, updatedAt: now }, caller), before, isChanged: true }
}

async function loadCandidate(
  db: Database,
  { id, scope }: AccountTarget,
  asked: { userId: string; roles: readonly string[] },
): Promise<{ account: AccountId; candidate: Candidate }> {
  const account = id as AccountId
  const candidate = includesAccount(scope, account) ? await lockCandidate(db, { account, ...asked }) : undefined
  if (!candidate?.hasAccount) throw notFound('account')
  return { account, candidate }
}

/** A member as `reader` may see it: with the e-mail address only if `reader` may read the user. */
export function showMember(member: NamedAccountMember, reader: Caller): NamedAccountMember {
  const seesAll = findPermissionScope(reader, READ_USER_PERMISSION) === 'all'
  return seesAll || member.userId === reader.userId ? member : { ...member, email: null }
}
