import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { columnStatement, isAfter, soleRowStatement, statement } from '../../postgres/statement/statement.ts'
import { type ClaimedDispatch, readClaimedDispatch, WORK_JSON } from '../delivery/claimed-work.ts'
import type { ClaimedAttempt } from '../delivery/outcome.ts'

/*
 * `held`: the longest due rows of one webhook, locked; those that another pull is leasing are skipped. A lease raises the
 * fence like any claim. Rows are looked up by the index of a webhook's due rows, and changed by their keys.
 */
/** Leases up to `max` due rows of a webhook until `leasedUntil`. None while it is inactive or deleted. */
export const leaseDue = statement<
  { work: unknown },
  { webhook: WebhookId; now: Date; leasedUntil: Date; max: number },
  ClaimedDispatch
>(
  `
  with held as materialized (
    select d.document_id from webhook_dispatch_open d
    where d.webhook = $webhook and d.next_attempt_at <= $now
      and (select w.is_actived and w.deleted_at is null from webhook w where w.document_id = $webhook)
    order by d.next_attempt_at limit $max for update skip locked
  ), leased as (
    update webhook_dispatch_open
    set leased_until = $leasedUntil, next_attempt_at = null, fence = fence + 1, attempts = attempts + 1,
      last_attempt_at = $now, updated_at = $now
    where document_id = any(array(select document_id from held))
    returning *
  )
  select ${WORK_JSON} as work
  from leased d
  cross join lateral (select * from webhook w where w.document_id = d.webhook offset 0) w
  cross join lateral (select * from event_occurrence e where e.document_id = d.event_id offset 0) e
  order by d.document_id`,
  ({ work }) => readClaimedDispatch(work),
)

/** The webhooks among these that need not wait: a row is due, or the webhook is inactive or deleted. */
export const listReady = columnStatement<WebhookId, { webhooks: readonly WebhookId[]; now: Date }>(`
  select a.id from unnest($webhooks::uuid[]) as a (id)
  left join lateral (select w.is_actived, w.deleted_at from webhook w where w.document_id = a.id offset 0) w on true
  cross join lateral (
    select (select d.next_attempt_at from webhook_dispatch_open d
      where d.webhook = a.id and d.next_attempt_at <= $now order by d.next_attempt_at limit 1) is not null as is_due offset 0
  ) d
  where d.is_due or w.is_actived is not true or w.deleted_at is not null`)

const BACKLOG_LIMIT = 10_000

export interface Backlog {
  /** Due rows, up to `BACKLOG_LIMIT`. */
  waiting: number
  /** Due time of the longest due one; null without one. */
  oldestAt: Date | null
}

/** Reads the backlog of one webhook. */
export const readBacklog = soleRowStatement<Backlog, { webhook: WebhookId; now: Date }>(`
  select
    (select count(*)::int from (
      select from webhook_dispatch_open d where d.webhook = $webhook and d.next_attempt_at <= $now
      limit ${BACKLOG_LIMIT}) d) as waiting,
    (select d.next_attempt_at from webhook_dispatch_open d where d.webhook = $webhook and d.next_attempt_at <= $now
      order by d.next_attempt_at limit 1) as "oldestAt"`)

/** A row under a lease, with the facts of its attempt. */
export interface LeasedRow extends ClaimedAttempt {
  leasedUntil: Date
}

const LEASED = `d.document_id as id, d.fence, d.attempts as attempt, d.attempt_trigger as trigger, d.is_test as "isTest",
    d.keeps_schedule as "keepsSchedule", d.webhook, d.event, d.last_attempt_at as "startedAt",
    d.leased_until as "leasedUntil"`

/** Up to `limit` rows whose lease has ended. They are not locked: the first record ends the lease. */
export const listLapsed = statement<LeasedRow, { now: Date; limit: number }>(`
  select ${LEASED} from webhook_dispatch_open d
  where d.leased_until <= $now order by d.leased_until limit $limit`)

/** A row of the ledger that a receipt names. The facts of an attempt hold while `leasedUntil` is not null. */
export type ReceiptRow = Omit<LeasedRow, 'leasedUntil'> & {
  leasedUntil: Date | null
  isSuccess: boolean
  isEnded: boolean
  lastError: string | null
}

/** The rows among these that belong to this webhook, open or ended. */
export const listReceiptRows = statement<ReceiptRow, { webhook: WebhookId; ids: readonly DispatchId[] }>(`
  select ${LEASED}, false as "isSuccess", false as "isEnded", d.last_error as "lastError" from unnest($ids::uuid[]) as a (id)
  cross join lateral (select * from webhook_dispatch_open d where d.document_id = a.id offset 0) d
  where d.webhook = $webhook
  union all
  select d.document_id, d.fence, d.attempts, 'schedule', d.is_test, false, d.webhook, d.event, d.created_at, null,
    d.status = 'success', true, d.last_error
  from unnest($ids::uuid[]) as a (id)
  cross join lateral (select * from webhook_dispatch_ended d where d.document_id = a.id offset 0) d
  where d.webhook = $webhook`)

export interface ExtendedLease {
  id: DispatchId
  leasedUntil: Date
}

const extend = statement<
  ExtendedLease,
  { ids: readonly DispatchId[]; fences: readonly number[]; now: Date; until: Date; totalSeconds: number }
>(`
  update webhook_dispatch_open d
  set leased_until = greatest(d.leased_until, least($until, d.last_attempt_at + make_interval(secs => $totalSeconds))),
    updated_at = $now
  where d.document_id = any(array(
      select x.document_id from webhook_dispatch_open x where x.document_id = any($ids::uuid[])
      order by x.document_id for update))
    and d.fence = ($fences::int[])[array_position($ids::uuid[], d.document_id)] and ${isAfter('d.leased_until', '$now')}
  returning d.document_id as id, d.leased_until as "leasedUntil"`)

/** Moves leases that have not ended to `until`, at most `totalSeconds` after the pull. Returns those found. */
export async function extendLeases(
  db: Database,
  leases: readonly { id: DispatchId; fence: number }[],
  bounds: { now: Date; until: Date; totalSeconds: number },
): Promise<ExtendedLease[]> {
  if (leases.length === 0) return []
  return extend(db, { ...bounds, ids: leases.map(({ id }) => id), fences: leases.map(({ fence }) => fence) })
}
