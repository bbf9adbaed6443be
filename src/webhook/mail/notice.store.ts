import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import type { MailId } from '../../identity/mail/mail.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { changeStatement, rowStatement, statement, valueStatement } from '../../postgres/statement/statement.ts'
import { GLOBAL_WEBHOOKS, type MailKind, type MailNotice } from './notice.ts'

const NOTICE_COLUMNS = [
  ['webhook', 'uuid'],
  ['kind', 'text'],
  ['account', 'uuid'],
  ['dispatch', 'uuid'],
  ['last_error', 'text'],
  ['last_status_code', 'int'],
] as const

const note = changeStatement<{ now: Date }>(`
  select note_webhook_mail(x.a, x.b, x.c, x.d, x.e, x.f, $now)
  from unnest(${listArrays(NOTICE_COLUMNS)}) with ordinality as x (a, b, c, d, e, f, n) order by x.n`)

/** Stores notices for mails, in this order, in the transaction that changes the locked webhooks. */
export async function noteMails(db: Database, notices: readonly MailNotice[], now: Date): Promise<void> {
  if (notices.length === 0) return
  const rows = notices.map((notice) => [
    notice.webhook,
    notice.kind,
    notice.account,
    notice.dispatch,
    notice.lastError,
    notice.lastStatusCode,
  ])
  await note(db, { ...transpose(NOTICE_COLUMNS, rows), now })
}

interface Pace {
  /** Delay between the first notice and the mails, in seconds. Notices within it share a mail. */
  collectS: number
  /** Minimum interval between mails of an account, in seconds. */
  paceS: number
  limit: number
}

/** Gives the accounts of up to `limit` new notices a turn. Returns the number of accounts. */
export const queueTurns = changeStatement<Pace>(`
  with fresh as (
    select webhook, kind, account, created_at from webhook_mail_notice where not is_queued
    order by created_at limit $limit for update skip locked
  ), marked as (
    update webhook_mail_notice n set is_queued = true from fresh f where n.webhook = f.webhook and n.kind = f.kind
  )
  insert into webhook_mail_turn as t (account, due_at)
  select account, min(created_at) + make_interval(secs => $collectS) from fresh group by account order by account
  on conflict (account) do update
  set due_at = least(t.due_at, greatest(excluded.due_at, t.mailed_at + make_interval(secs => $paceS)))`)

/** Locks the account whose turn is due first until the transaction ends. Undefined when none is. */
export const lockDueTurn = rowStatement<{ account: AccountId; accountName: string }, { now: Date }>(`
  with turn as (
    select account from webhook_mail_turn where due_at <= $now and not is_resting(account)
    order by due_at limit 1 for update skip locked
  )
  select t.account, coalesce((select a.name from account a where a.document_id = t.account), '') as "accountName" from turn t`)

/** The name of an account in home; undefined when it is deleted. */
export const findAccountName = valueStatement<string | undefined, { account: AccountId }>(
  'select name from account where document_id = $account and deleted_at is null',
)

/** A notice with the present state of its webhook. */
export interface DueNotice extends Omit<MailNotice, 'account'> {
  name: string | null
  url: string
  contacts: UserId[]
  noticedAt: Date
  /** Whether it still holds: webhook and account exist, and the webhook is active or disabled as noticed. */
  holds: boolean
  /** Whether mails told it while the account was in a cell. */
  isTold: boolean
}

/** Whether a webhook is one of those that an account, or `GLOBAL_WEBHOOKS`, stands for. */
export const IS_OF = (webhook: string, account: string): string =>
  `case when ${webhook}.is_global then ${account} = '${GLOBAL_WEBHOOKS}' else ${webhook}.account = ${account} end`

/** The open notices of an account, oldest first, locked until the transaction ends. */
export const listDueNotices = statement<DueNotice, { account: AccountId; limit: number }>(`
  with due as (
    select webhook, kind, dispatch, last_error, last_status_code, created_at from webhook_mail_notice
    where account = $account and is_queued and mailed_at is null order by created_at limit $limit
    for update skip locked
  )
  select d.webhook, d.kind, d.dispatch, d.last_error as "lastError", d.last_status_code as "lastStatusCode", w.name, w.url,
    w.contacts, d.created_at as "noticedAt",
    exists (select from webhook_mail_told t
      where t.webhook = d.webhook and t.kind = d.kind and t.noticed_at = d.created_at) as "isTold",
    w.deleted_at is null and ${IS_OF('w', '$account')} and case d.kind
      when 'disabled' then not w.is_actived and w.disabled_reason is not distinct from 'consecutive-failures'
      else w.is_actived end
    and ($account = '${GLOBAL_WEBHOOKS}' or (select a.deleted_at is null from account a where a.document_id = $account))
    as holds
  from due d cross join lateral (select * from webhook x where x.document_id = d.webhook offset 0) w
  order by d.created_at, d.webhook`)

export interface MailReader {
  user: UserId
  email: string
  /** Whether it looks after all of these webhooks, and not only after those that name it. */
  isAdministrator: boolean
  stoppedWebhooks: WebhookId[]
  language: string
}

/** The users who may get mails, administrators first. */
export const listReaders = statement<
  MailReader,
  { account: AccountId; contacts: readonly UserId[]; administrator: string; limit: number }
>(`
  select r."user", r.email, r.is_administrator as "isAdministrator", r.stopped_webhooks as "stoppedWebhooks", r.language
  from webhook_mail_readers($account, $contacts::uuid[], $administrator, $limit) r`)

/** The operators who may get mails about global webhooks: a role beyond accounts holds one of these patterns. */
export const listOperatorReaders = statement<MailReader, { patterns: readonly string[]; limit: number }>(`
  select r."user", r.email, true as "isAdministrator", r.stopped_webhooks as "stoppedWebhooks", r.language
  from webhook_mail_operators($patterns::text[], $limit) r`)

interface HeldNotices {
  user: UserId
  notices: number
}

/** The notices that were held back for each of these users, whose rows are locked; a mail tells of them now. */
export const takeHeldNotices = statement<HeldNotices, { users: readonly UserId[] }>(`
  with held as (
    select s."user", s.held_notices from webhook_mail_setting s
    where s."user" = any($users::uuid[]) and s.held_notices > 0 order by s."user" for update
  ), told as (
    update webhook_mail_setting s set held_notices = 0 where s."user" = any(array(select h."user" from held h))
  )
  select h."user", h.held_notices as notices from held h`)

const addHeld = changeStatement<{ users: readonly UserId[]; notices: readonly number[]; now: Date }>(`
  insert into webhook_mail_setting as s ("user", held_notices, created_at, updated_at)
  select x."user", x.notices, $now, $now from unnest($users::uuid[], $notices::int[]) x ("user", notices) order by x."user"
  on conflict ("user") do update set held_notices = least(s.held_notices::bigint + excluded.held_notices, 1000000)::int`)

/** Counts notices that no mail told, for the next mail of their users. */
export async function holdNoticesBack(db: Database, held: readonly HeldNotices[], now: Date): Promise<void> {
  if (held.length === 0) return
  await addHeld(db, { users: held.map(({ user }) => user), notices: held.map(({ notices }) => notices), now })
}

const endTurn = changeStatement<{
  account: AccountId
  webhooks: readonly WebhookId[]
  kinds: readonly MailKind[]
  lasting: readonly boolean[]
  now: Date
  nextAt: Date
}>(`
  with ended as (
    select * from unnest($webhooks::uuid[], $kinds::text[], $lasting::boolean[]) x (webhook, kind, is_lasting)
  ), told as (
    update webhook_mail_notice n set mailed_at = $now from ended e
    where n.webhook = e.webhook and n.kind = e.kind and e.is_lasting
  ), gone as (
    delete from webhook_mail_notice n using ended e
    where n.webhook = e.webhook and n.kind = e.kind and not e.is_lasting
  )
  update webhook_mail_turn set mailed_at = $now, due_at = case when exists (
    select from webhook_mail_notice n where n.account = $account and n.is_queued and n.mailed_at is null
      and not exists (select from ended e where e.webhook = n.webhook and e.kind = n.kind)) then $nextAt::timestamptz end
  where account = $account`)

/** Ends a turn and its notices, except of failing webhooks. With open notices left there is another at `nextAt`. */
export async function endMailTurn(
  db: Database,
  { notices, ...turn }: { account: AccountId; notices: readonly DueNotice[]; now: Date; nextAt: Date },
): Promise<void> {
  await endTurn(db, {
    ...turn,
    webhooks: notices.map(({ webhook }) => webhook),
    kinds: notices.map(({ kind }) => kind),
    lasting: notices.map(({ kind, holds }) => kind === 'failing' && holds),
  })
}

const RECIPIENT_COLUMNS = [
  ['mail', 'uuid'],
  ['"user"', 'uuid'],
  ['account', 'uuid'],
] as const

const insertRecipients = changeStatement<{ webhooks: readonly string[] }>(`
  insert into webhook_mail_recipient (${listNames(RECIPIENT_COLUMNS)}, webhooks)
  select x.a, x.b, x.c, string_to_array(x.d, ',')::uuid[]
  from unnest(${listArrays(RECIPIENT_COLUMNS)}, $webhooks::text[]) as x (a, b, c, d)`)

export interface MailRecipient {
  mail: MailId
  user: UserId
  account: AccountId
  webhooks: readonly WebhookId[]
}

/** Stores the recipients of mails in the outbox. */
export async function insertMailRecipients(db: Database, recipients: readonly MailRecipient[]): Promise<void> {
  const rows = recipients.map(({ mail, user, account }) => [mail, user, account])
  const webhooks = recipients.map((recipient) => recipient.webhooks.join(','))
  await insertRecipients(db, { ...transpose(RECIPIENT_COLUMNS, rows), webhooks })
}

/** Deletes up to `limit` turns that ended before `before`. Returns their number. For maintenance. */
export const deleteOldTurns = deletionOfOld('webhook_mail_turn', {
  key: 'account',
  time: 'mailed_at',
  and: 'due_at is null',
})
