import { checkMayChangeMember } from '../access/delegation.ts'
import { type Caller, findPermissionScope, includesAccount, type PermissionScope } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { leaveAccount } from '../session/session.ts'
import {
  type AccountLock,
  type AccountRecord,
  findAccount,
  insertAccount,
  selectAccounts,
  updateAccount,
} from './account.store.ts'
import {
  type AccountMemberRecord,
  deleteAccountMember,
  insertAccountMember,
  lockLivingUser,
  type NamedAccountMember,
  withUserNames,
} from './account-member.store.ts'

/** What the operations on accounts use. */
export interface AccountDeps {
  ids: IdMaker
  /** Makes the webhooks of an account that is deleted inactive, in the transaction that deletes it. */
  deactivateWebhooksOf: (db: Database, account: AccountId, change: { by: UserId; now: Date }) => Promise<void>
}

/**
 * The account with this id, or a 404: also for a caller who may not reach it, so that ids of others stay unknown. A change
 * locks it, so that two changes follow each other.
 */
export async function loadAccount(
  db: Database,
  { id, scope, lock }: { id: string; scope: PermissionScope; lock?: AccountLock },
): Promise<AccountRecord> {
  const account = await findAccount(db, id, lock ? { lock } : {})
  if (!account || !includesAccount(scope, account.id)) throw notFound('account')
  return account
}

/** Checks that a body names an existing account, and keeps it until the transaction ends. Throws a 422 on `account`. */
export async function checkAccountExists(db: Database, id: string): Promise<AccountId> {
  const account = await findAccount(db, id, { lock: 'keep' })
  if (!account) throw invalidField('account', 'unknown_account', 'There is no account with this id, or it was deleted.')
  return account.id
}

/** Which of these ids are those of existing accounts; one question for any number of them. */
export async function findExistingAccounts(db: Database, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await selectAccounts(db, ids as readonly AccountId[])
    .select('document_id')
    .execute()
  return new Set(rows.map((row) => row.document_id))
}

/** Creates an account without members. */
export function createAccount(
  deps: Pick<AccountDeps, 'ids'>,
  db: Database,
  input: { name: string; by: UserId | null; now: Date },
): Promise<AccountRecord> {
  return insertAccount(db, { id: deps.ids.next<'account'>(), ...input })
}

/** Opens an account with its first member: what a person gets who signs up (docs/contract/sessions.md#login-payload). */
export async function openAccountFor(
  deps: Pick<AccountDeps, 'ids'>,
  db: Database,
  input: { name: string; userId: UserId; now: Date },
): Promise<AccountRecord> {
  const { name, userId, now } = input
  const account = await createAccount(deps, db, { name, by: userId, now })
  await insertAccountMember(db, { id: deps.ids.next<'account member'>(), account: account.id, userId, now })
  return account
}

/** Changes the name of a locked account. Returns undefined when it is the same. */
export async function renameAccount(
  db: Database,
  account: AccountRecord,
  input: { name: string; by: UserId; now: Date },
): Promise<AccountRecord | undefined> {
  return input.name === account.name ? undefined : updateAccount(db, account.id, input)
}

/**
 * Soft-deletes a locked account. What its members hold there ends with the next request, no session stands in it any more,
 * and its webhooks become inactive.
 */
export async function deleteAccount(
  deps: Pick<AccountDeps, 'deactivateWebhooksOf'>,
  db: Database,
  input: { account: AccountRecord; by: UserId; now: Date },
): Promise<AccountRecord> {
  const { account, by, now } = input
  const deleted = await updateAccount(db, account.id, { deletedAt: now, by, now })
  await leaveAccount(db, { account: account.id, userId: 'all', now })
  await deps.deactivateWebhooksOf(db, account.id, { by, now })
  return deleted
}

/**
 * Makes a user a member of a kept account. Throws 422 when there is no such user, 403 when the membership gives more than the
 * caller holds there, 409 when the user is a member already.
 */
export async function addMember(
  deps: Pick<AccountDeps, 'ids'>,
  db: Database,
  input: { account: AccountRecord; userId: string; caller: Caller; now: Date },
): Promise<NamedAccountMember> {
  const { account, caller, now } = input
  if (!(await lockLivingUser(db, input.userId)))
    throw invalidField('user', 'unknown_user', 'There is no user with this id, or it was deleted.')
  const userId = input.userId as UserId
  await checkMayChangeMember(db, caller, { userId, account: account.id, action: 'add this member' })
  const id = deps.ids.next<'account member'>()
  const member = await insertAccountMember(db, { id, account: account.id, userId, now })
  if (!member) throw new Problem('conflict', 'This user is a member of the account already.')
  return nameMember(db, member, caller)
}

/**
 * Removes a member, whose sessions leave the account. Throws 404 when the user is none, 403 when the membership gives more
 * than the caller holds there.
 */
export async function removeMember(
  db: Database,
  input: { account: AccountRecord; userId: string; caller: Caller; now: Date },
): Promise<NamedAccountMember> {
  const { account, caller, now } = input
  const userId = input.userId as UserId
  await checkMayChangeMember(db, caller, { userId, account: account.id, action: 'remove this member' })
  const member = await deleteAccountMember(db, account.id, userId)
  if (!member) throw new Problem('not_found', 'This user is no member of the account.')
  await leaveAccount(db, { account: account.id, userId, now })
  return nameMember(db, member, caller)
}

/** Adds to each member the person's name, and the e-mail address if the reader may see the person. */
export async function nameMembers(
  db: Database,
  members: readonly AccountMemberRecord[],
  reader: Caller,
): Promise<NamedAccountMember[]> {
  const seesAll = findPermissionScope(reader, 'user:find-one') === 'all'
  const named = await withUserNames(db, members)
  return named.map((member) => (seesAll || member.userId === reader.userId ? member : { ...member, email: null }))
}

async function nameMember(db: Database, member: AccountMemberRecord, reader: Caller): Promise<NamedAccountMember> {
  const [named] = await nameMembers(db, [member], reader)
  if (!named) throw new Error('a member was lost while it was named')
  return named
}
