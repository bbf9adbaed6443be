import { includesAccount, type PermissionScope } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type AccountRecord, findAccount, insertAccount, selectAccounts, updateAccount } from './account.store.ts'
import {
  deleteAccountMember,
  insertAccountMember,
  isLivingUser,
  type NamedAccountMember,
  withUserNames,
} from './account-member.store.ts'

/** What the operations on accounts use. */
export interface AccountDeps {
  ids: IdMaker
}

/** The account with this id, or a 404: also for a caller who may not reach it, so that ids of others stay unknown. */
export async function loadAccount(
  db: Database,
  { id, scope }: { id: string; scope: PermissionScope },
): Promise<AccountRecord> {
  const account = await findAccount(db, id)
  if (!account || !includesAccount(scope, account.id)) throw notFound('account')
  return account
}

/** Checks that a body names an existing account. Throws a 422 on `account`. */
export async function checkAccountExists(db: Database, id: string): Promise<AccountId> {
  const account = await findAccount(db, id)
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
  deps: AccountDeps,
  db: Database,
  input: { name: string; by: UserId | null; now: Date },
): Promise<AccountRecord> {
  return insertAccount(db, { id: deps.ids.next<'account'>(), ...input })
}

/** Opens an account with its first member: what a person gets who signs up (D26). */
export async function openAccountFor(
  deps: AccountDeps,
  db: Database,
  input: { name: string; userId: UserId; now: Date },
): Promise<AccountRecord> {
  const { name, userId, now } = input
  const account = await createAccount(deps, db, { name, by: userId, now })
  await insertAccountMember(db, { id: deps.ids.next<'account member'>(), account: account.id, userId, now })
  return account
}

/** Changes the name. */
export function renameAccount(
  db: Database,
  account: AccountRecord,
  input: { name: string; by: UserId; now: Date },
): Promise<AccountRecord> {
  return updateAccount(db, account.id, input)
}

/** Soft-deletes an account. What holds for the accounts of its members holds for it no more, from the next request on. */
export function deleteAccount(
  db: Database,
  account: AccountRecord,
  input: { by: UserId; now: Date },
): Promise<AccountRecord> {
  return updateAccount(db, account.id, { ...input, deletedAt: input.now })
}

/** Makes a user a member. Throws 422 when there is no such user, 409 when the user is one already. */
export async function addMember(
  deps: AccountDeps,
  db: Database,
  input: { account: AccountRecord; userId: string; now: Date },
): Promise<NamedAccountMember> {
  const { account, userId, now } = input
  if (!(await isLivingUser(db, userId)))
    throw invalidField('user', 'unknown_user', 'There is no user with this id, or it was deleted.')
  const id = deps.ids.next<'account member'>()
  const member = await insertAccountMember(db, { id, account: account.id, userId: userId as UserId, now })
  if (!member) throw new Problem('conflict', 'This user is a member of the account already.')
  return nameMember(db, member)
}

/** Removes a member. Throws 404 when the user is none. */
export async function removeMember(
  db: Database,
  input: { account: AccountRecord; userId: string },
): Promise<NamedAccountMember> {
  const member = await deleteAccountMember(db, input.account.id, input.userId)
  if (!member) throw new Problem('not_found', 'This user is no member of the account.')
  return nameMember(db, member)
}

async function nameMember(
  db: Database,
  member: Parameters<typeof withUserNames>[1][number],
): Promise<NamedAccountMember> {
  const [named] = await withUserNames(db, [member])
  if (!named) throw new Error('a member was lost while it was named')
  return named
}
