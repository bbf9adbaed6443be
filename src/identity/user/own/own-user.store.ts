import type { AccountId, UserId } from '../../../base/id.ts'
import { statement } from '../../../postgres/statement/statement.ts'

const IS_ADMIN = `
  select m.account from account_member m
  join account_member_role x on x.member = m.document_id
  join role r on r.document_id = x.role
  where m."user" = $userId and r.name = $role`

/** Locks the accounts in which a user has this role: their members and their roles stay. Returns their ids. */
export const lockAdministeredAccounts = statement<{ id: AccountId }, { userId: UserId; role: string }, AccountId>(
  `select a.document_id as id from account a
  where a.document_id = any(array(${IS_ADMIN})) and a.deleted_at is null
  order by a.document_id for no key update`,
  ({ id }) => id,
)

/** An account in which a user has a role. */
export interface AdministeredAccount {
  id: AccountId
  name: string
  /** Whether another active user has the role there. */
  hasOther: boolean
}

/** The accounts in which a user has this role. Read behind the locks of the accounts and of the user. */
export const listAdministeredAccounts = statement<AdministeredAccount, { userId: UserId; role: string }>(`
  select a.document_id as id, a.name, exists (
    select from account_member m
    join account_member_role x on x.member = m.document_id
    join role r on r.document_id = x.role and r.name = $role
    join "user" u on u.document_id = m."user"
    where m.account = a.document_id and m."user" <> $userId and u.is_actived and u.deleted_at is null) as "hasOther"
  from account a where a.document_id = any(array(${IS_ADMIN})) and a.deleted_at is null
  order by a.document_id`)
