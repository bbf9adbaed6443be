import type { AccountId } from '../../base/id.ts'
import { invalidField } from '../../http/problem/problem.ts'
import { listMembersAmong } from '../../identity/account/account.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** Checks that contacts are members (docs/contract/webhooks.md#contacts). Throws a 422 at the first other one. */
export async function checkContacts(db: Database, contacts: readonly string[], account: string | null): Promise<void> {
  if (contacts.length === 0) return
  if (account === null) throw invalidField('contacts', 'global', 'a global webhook has none; send an empty list')
  const members = new Set<string>(await listMembersAmong(db, { account, users: contacts }))
  const index = contacts.findIndex((contact) => !members.has(contact))
  if (index === -1) return
  const text = 'is no member of the account; add the user to the account first, or leave it out'
  throw invalidField(`contacts.${index}`, 'no_member', text)
}

/** The contacts of a changed webhook: those given, checked (`checkContacts`); else those before, unless it moves. */
export async function findContacts(
  db: Database,
  before: { account: AccountId | null; contacts: string[] },
  { given, account }: { given: string[] | undefined; account: AccountId | null },
): Promise<string[]> {
  if (given) await checkContacts(db, given, account)
  return given ?? (account === before.account ? before.contacts : [])
}
