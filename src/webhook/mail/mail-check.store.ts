import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import type { MailId } from '../../identity/mail/mail.ts'
import { rowStatement, valueStatement } from '../../postgres/statement/statement.ts'
import { IS_OF } from './notice.store.ts'
import { GLOBAL_WEBHOOKS } from './notice.ts'

/** Webhooks `w` of the account of a mail, or global ones, that its user looks after. */
const isLookedAfter = (webhooks: string, account: string, user: string, isAdministrator: string) => `
    exists (select from webhook w where w.document_id = any(${webhooks}) and w.deleted_at is null
      and ${IS_OF('w', account)} and (${isAdministrator} or w.contacts @> array[${user}]))`

/** A mail in the outbox with what home says of its user; a mail of an account in home is judged by it alone. */
export interface JudgedMail {
  user: UserId
  /** `GLOBAL_WEBHOOKS` for a mail about global webhooks. */
  account: AccountId
  /** Those of the mail that the user has not stopped. */
  webhooks: WebhookId[]
  /** Whether it administers the account, or a role lets it change all global webhooks. */
  isAdministrator: boolean
  /** Whether the user is a member or such an operator, at this address, and wants such mails. */
  isReader: boolean
  /** Whether home has one of the webhooks, and the user looks after it. */
  isOfHome: boolean
}

/** Conditions for a user to be a reader: the role of administrators, and the patterns that let operators change webhooks. */
interface Readers {
  administrator: string
  operatorPatterns: readonly string[]
}

/** Facts of home about a mail; undefined when it is about an account of which its user is no member any more. */
export const findJudgedMail = rowStatement<JudgedMail, Readers & { mail: MailId; to: string }>(`
  select r."user", r.account, x.webhooks, x."isAdministrator",
    coalesce(u.email = $to and u.is_actived and u.deleted_at is null and u.email_verified_at is not null
      and a.deleted_at is null and not coalesce(s.is_stopped, false), false) as "isReader",
    ${isLookedAfter('x.webhooks', 'r.account', 'r."user"', 'x."isAdministrator"')} as "isOfHome"
  from webhook_mail_recipient r
  left join account_member m on m.account = r.account and m."user" = r."user"
  cross join lateral (select * from "user" x where x.document_id = r."user" offset 0) u
  left join lateral (select * from account x where x.document_id = r.account offset 0) a on true
  left join lateral (select * from webhook_mail_setting x where x."user" = r."user" offset 0) s on true
  cross join lateral (
    select array(select w from unnest(r.webhooks) w where w <> all(coalesce(s.stopped_webhooks, '{}'))) as webhooks,
      case when r.account = '${GLOBAL_WEBHOOKS}' then holds_beyond_accounts(r."user", $operatorPatterns::text[])
        else exists (select from account_member_role mr where mr.member = m.document_id
          and (select o.name = $administrator from role o where o.document_id = mr.role)) end as "isAdministrator"
    offset 0
  ) x
  where r.mail = $mail and (m.document_id is not null or r.account = '${GLOBAL_WEBHOOKS}')`)

/** Whether a cell has one of the webhooks of a mail, and its user looks after it. */
export const isLookedAfterIn = valueStatement<
  boolean,
  Pick<JudgedMail, 'user' | 'account' | 'webhooks' | 'isAdministrator'>
>(`select ${isLookedAfter('$webhooks::uuid[]', '$account::uuid', '$user::uuid', '$isAdministrator::boolean')} as is`)
