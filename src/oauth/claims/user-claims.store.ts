import type { AccountId } from '../../base/id.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'

const user = defineRecord('user', ['document_id', 'email', 'name', 'avatar_url', 'updated_at'])

/** The user of a token, for the claims. */
export interface UserClaims extends RecordOf<typeof user> {
  isEmailVerified: boolean
  /** The account with the longest membership, of those that are reached without a proof of the session. */
  firstAccount: AccountId | null
}

/** Columns of `UserClaims`, from the table `"user" u`. The subquery equals `first_account_of`, and costs less than its call. */
export const USER_CLAIMS = `${user.members('u')}, u.email_verified_at is not null as "isEmailVerified", (
      select m.account from account_member m
      where m."user" = u.document_id and (select a.deleted_at is null from account a where a.document_id = m.account)
        and m.account is distinct from (select n.account from narrowing_of(u.document_id) n)
      order by m.created_at, m.document_id limit 1
    ) as "firstAccount"`

/** The user with this id; undefined when it is disabled or deleted. */
export const findActiveUser = rowStatement<UserClaims, { id: string }>(
  `select ${USER_CLAIMS} from "user" u where u.document_id = $id and u.is_actived and u.deleted_at is null`,
)
