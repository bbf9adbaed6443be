import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { statement } from '../../postgres/statement/statement.ts'

const user = defineRecord('user', ['document_id', 'email', 'name', 'avatar_url', 'updated_at'])

/** The user of a token, for the claims. */
export interface UserClaims extends RecordOf<typeof user> {
  isEmailVerified: boolean
  /** The account with the longest membership. */
  firstAccount: AccountId | null
}

/** The members of the claims, of the table `"user" u`. The account is that of `first_account_of`, whose call costs more than its look-up. */
export const OF_ACCOUNT = `${user.members('u')}, u.email_verified_at is not null as "isEmailVerified", (
      select m.account from account_member m
      where m."user" = u.document_id and (select a.deleted_at is null from account a where a.document_id = m.account)
      order by m.created_at, m.document_id limit 1
    ) as "firstAccount"`

const selectAccount = statement<UserClaims, { id: string }>(
  `select ${OF_ACCOUNT} from "user" u where u.document_id = $id and u.is_actived and u.deleted_at is null`,
)

/** The user with this id; undefined when it is disabled or deleted. */
export async function findActiveAccount(db: Database, id: string): Promise<UserClaims | undefined> {
  const [row] = await selectAccount(db, { id })
  return row
}
