import type { AccountId, WebhookId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { aheadStatement, changeStatement, statement, valueStatement } from '../../postgres/statement/statement.ts'
import type { DueNotice } from './notice.store.ts'
import type { MailKind } from './notice.ts'

/** Leases the due turn of an account in a cell until `leaseEnd`; undefined for none. No lock waits for its mails. */
export const leaseDueTurn = valueStatement<AccountId | undefined, { now: Date; leaseEnd: Date }>(`
  with due as (
    select account from webhook_mail_turn where due_at <= $now and not is_resting(account)
    order by due_at limit 1 for update skip locked
  )
  update webhook_mail_turn set due_at = $leaseEnd where account = any(array(select account from due)) returning account`)

type NoticeKey = Pick<DueNotice, 'webhook' | 'kind' | 'noticedAt'>

interface KeyParams {
  webhooks: readonly WebhookId[]
  kinds: readonly MailKind[]
  times: readonly Date[]
}

const keysOf = (notices: readonly NoticeKey[]): KeyParams => ({
  webhooks: notices.map(({ webhook }) => webhook),
  kinds: notices.map(({ kind }) => kind),
  times: notices.map(({ noticedAt }) => noticedAt),
})

/** The places of open notices, each looked up by its key. */
const PLACES = `
    select o.ctid from unnest($webhooks::uuid[], $kinds::text[], $times::timestamptz[]) k (webhook, kind, at)
    cross join lateral (
      select ctid, created_at from webhook_mail_notice x where x.webhook = k.webhook and x.kind = k.kind offset 0) o
    where o.created_at = k.at`

const take = changeStatement<KeyParams>(`
  update webhook_mail_notice set is_taken = true where ctid = any(array(${PLACES}))`)

/** Marks locked notices as being told: one that ends meanwhile counts as told. */
export async function takeNotices(cell: Database, notices: readonly NoticeKey[]): Promise<void> {
  if (notices.length > 0) await take(cell, keysOf(notices))
}

const TOLD_COLUMNS = [
  ['webhook', 'uuid'],
  ['kind', 'text'],
  ['noticed_at', 'timestamptz'],
] as const

const insertTold = statement<{ webhook: WebhookId; kind: MailKind }, { now: Date }>(`
  insert into webhook_mail_told (${listNames(TOLD_COLUMNS)}, told_at)
  select x.a, x.b, x.c, $now from unnest(${listArrays(TOLD_COLUMNS)}) x (a, b, c) order by 1, 2, 3
  on conflict do nothing returning webhook, kind`)

/** Records in home, together with their mails, the notices of a cell. Returns those that no process had recorded before. */
export async function noteTold(home: Database, notices: readonly DueNotice[], now: Date): Promise<DueNotice[]> {
  if (notices.length === 0) return []
  const rows = notices.map(({ webhook, kind, noticedAt }) => [webhook, kind, noticedAt])
  const fresh = await insertTold(home, { ...transpose(TOLD_COLUMNS, rows), now })
  const keys = new Set(fresh.map(({ webhook, kind }) => `${webhook} ${kind}`))
  return notices.filter(({ webhook, kind }) => keys.has(`${webhook} ${kind}`))
}

const endNotices = changeStatement<KeyParams & { lasting: readonly boolean[]; now: Date }>(`
  with ended as (
    select o.ctid as place, k.is_lasting
    from unnest($webhooks::uuid[], $kinds::text[], $times::timestamptz[], $lasting::boolean[]) k (webhook, kind, at, is_lasting)
    cross join lateral (
      select ctid, created_at from webhook_mail_notice x where x.webhook = k.webhook and x.kind = k.kind offset 0) o
    where o.created_at = k.at
  ), told as (
    update webhook_mail_notice n set mailed_at = $now, is_taken = false
    where n.ctid = any(array(select place from ended where is_lasting))
  )
  delete from webhook_mail_notice n where n.ctid = any(array(select place from ended where not is_lasting))`)

const lockTurn = aheadStatement<{ account: AccountId }>(
  'select from webhook_mail_turn where account = $account for update',
)

/** With open notices that came meanwhile, the account gets another turn. */
const endTurn = changeStatement<{ account: AccountId; now: Date; nextAt: Date }>(`
  update webhook_mail_turn set mailed_at = $now, due_at = case when exists (
    select from webhook_mail_notice n where n.account = $account and n.is_queued and n.mailed_at is null) then $nextAt::timestamptz end
  where account = $account`)

/** Ends a turn of a cell and its notices, in a transaction of the cell: only that of a failing webhook lasts. */
export async function endLeasedTurn(
  tx: Database,
  { account, notices, now, nextAt }: { account: AccountId; notices: readonly DueNotice[]; now: Date; nextAt: Date },
): Promise<void> {
  const lasting = notices.map(({ kind, holds }) => kind === 'failing' && holds)
  if (notices.length > 0) await endNotices(tx, { ...keysOf(notices), lasting, now })
  await lockTurn(tx, { account })
  await endTurn(tx, { account, now, nextAt })
}

const giveBack = changeStatement<KeyParams & { account: AccountId; dueAt: Date }>(`
  with untold as (
    update webhook_mail_notice set is_taken = false where ctid = any(array(${PLACES}))
  )
  update webhook_mail_turn set due_at = least(due_at, $dueAt) where account = $account`)

/** Gives a leased turn back: home wrote nothing. */
export async function giveTurnBack(
  cell: Database,
  { account, notices, dueAt }: { account: AccountId; notices: readonly NoticeKey[]; dueAt: Date },
): Promise<void> {
  await giveBack(cell, { ...keysOf(notices), account, dueAt })
}

/** Deletes up to `limit` notes of notices that were told before `before`. Returns their number. For maintenance. */
export const deleteOldTold = deletionOfOld('webhook_mail_told', { key: 'ctid', time: 'told_at' })
