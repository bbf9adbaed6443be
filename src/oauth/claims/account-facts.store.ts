import type { AccountId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** The user that a token stands for, as the claims describe it. */
export interface AccountFacts {
  id: UserId
  email: string
  isEmailVerified: boolean
  name: string | null
  avatarUrl: string | null
  updatedAt: Date
  /** The account with the longest membership. */
  firstAccount: AccountId | null
}

/** The columns of `OF_ACCOUNT`. */
export interface AccountColumns {
  user_id: string
  email: string
  is_email_verified: boolean
  name: string | null
  avatar_url: string | null
  user_updated_at: Date
  account: AccountId | null
}

/**
 * Columns that `toAccountFacts` reads, of the table `"user" u`. The account is that of `first_account_of`, whose call costs more than
 * its look-up.
 */
export const OF_ACCOUNT = `u.document_id as user_id, u.email, u.email_verified_at is not null as is_email_verified, u.name,
    u.avatar_url, u.updated_at as user_updated_at, (
      select m.account from account_member m
      where m."user" = u.document_id and (select a.deleted_at is null from account a where a.document_id = m.account)
      order by m.created_at, m.document_id limit 1
    ) as account`

/** Maps the columns of `OF_ACCOUNT`. */
export function toAccountFacts(row: AccountColumns): AccountFacts {
  return {
    id: row.user_id as UserId,
    email: row.email,
    isEmailVerified: row.is_email_verified,
    name: row.name,
    avatarUrl: row.avatar_url,
    updatedAt: row.user_updated_at,
    firstAccount: row.account,
  }
}

const selectAccount = statement<AccountColumns, { id: string }>(
  `select ${OF_ACCOUNT} from "user" u where u.document_id = $id and u.is_actived and u.deleted_at is null`,
)

/** The user with this id; undefined when it is disabled or deleted. */
export async function findActiveAccount(db: Database, id: string): Promise<AccountFacts | undefined> {
  const [row] = await selectAccount(db, { id })
  return row && toAccountFacts(row)
}
