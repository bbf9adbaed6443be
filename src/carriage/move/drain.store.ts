import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, rowStatement, valueStatement } from '../../postgres/statement/statement.ts'

interface OfAccount {
  account: AccountId
}

/** The webhooks of the account that receive its events alone. */
const OWN = 'array(select w.document_id from webhook w where w.account = $account and not w.is_global)'

/** Whether events of the account wait for routing, or tests of inactive webhooks. `offset 0`: the queues are short. */
export const hasUnrouted = valueStatement<boolean, OfAccount>(`
  select exists (
    select from event_queue q cross join lateral (
      select e.account from event_occurrence e where e.document_id = q.event_id offset 0) e
    where e.account = $account
  ) or exists (
    select from webhook_fan_out q cross join lateral (
      select e.account from event_occurrence e where e.document_id = q.event_id offset 0) e
    where e.account = $account
  ) or exists (
    select from webhook_dispatch_open d cross join lateral (
      select w.account from webhook w
      where w.document_id = d.webhook and not w.is_global and not w.is_actived and w.deleted_at is null offset 0) w
    where d.is_test and d.kept_until is null and d.next_attempt_at is not null and w.account = $account
  ) as waits`)

/** Whether events of the account wait for the event log, or events are published again. */
export const hasUnlogged = valueStatement<boolean, OfAccount>(`
  select exists (select from event_log where republish_until is not null) or exists (
    select from event_outbox o cross join lateral (
      select e.account from event_occurrence e where e.document_id = o.event_id offset 0) e
    where e.account = $account
  ) as waits`)

/** Whether attempts or leases are under way, rows could be claimed, or results are not added up. */
export const hasAttempts = valueStatement<boolean, OfAccount>(`
  select exists (
    select from webhook_dispatch_open d where d.lease_owner is not null and d.webhook = any(${OWN})
  ) or exists (
    select from webhook_dispatch_open d where d.leased_until is not null and d.webhook = any(${OWN})
  ) or exists (
    select from webhook_queue q where q.webhook = any(${OWN}) and not q.is_held
  ) or exists (
    select from realtime_message_open m where m.lease_owner is not null and m.account = $account
  ) or exists (
    select from realtime_queue q where q.account = $account and q.visit_at < timestamptz '9999-01-01'
  ) or exists (
    select from webhook_outcome_batch b where $account = any(b.owners) or b.webhooks && ${OWN}
  ) as waits`)

const restWebhooks = changeStatement<OfAccount>(`
  insert into webhook_queue as q (webhook, visit_at, is_held)
  select w.document_id, clock_timestamp(), true from webhook w
  where w.account = $account and not w.is_global
    and (exists (select from webhook_dispatch_open d where d.webhook = w.document_id and d.kept_until is null)
      or exists (select from webhook_queue h where h.webhook = w.document_id))
  order by w.document_id
  on conflict (webhook) do update set is_held = true where not q.is_held`)

const restRealtime = changeStatement<OfAccount>(`
  insert into realtime_queue as q (account, visit_at)
  select $account::uuid, timestamptz '9999-01-01'
  where exists (select from realtime_message_open m where m.account = $account)
    or exists (select from realtime_queue h where h.account = $account)
  on conflict (account) do update set visit_at = excluded.visit_at where q.visit_at < excluded.visit_at`)

/** Takes the account out of the turns: nothing of it is claimed any more. Attempts under way end. */
export async function restQueues(db: Database, account: AccountId): Promise<void> {
  await restWebhooks(db, { account })
  await restRealtime(db, { account })
}

const wakeWebhooks = changeStatement<OfAccount>(`
  insert into webhook_queue as q (webhook, visit_at, is_held)
  select w.document_id, d.due_at, not w.is_actived from webhook w
  cross join lateral (
    select o.next_attempt_at as due_at from webhook_dispatch_open o
    where o.webhook = w.document_id and o.next_attempt_at is not null and o.kept_until is null
    order by o.next_attempt_at limit 1) d
  where w.account = $account and not w.is_global and w.deleted_at is null
  order by w.document_id
  on conflict (webhook) do update set is_held = excluded.is_held, visit_at = excluded.visit_at`)

const wakeRest = changeStatement<OfAccount>(`
  update webhook_queue q set is_held = false where q.webhook = any(${OWN}) and q.is_held
    and (select w.is_actived or w.deleted_at is not null from webhook w where w.document_id = q.webhook)`)

const wakeRealtime = changeStatement<OfAccount>(`
  with due as (
    select min(m.next_attempt_at) as at from realtime_message_open m
    where m.account = $account and m.next_attempt_at is not null
  ), gone as (
    delete from realtime_queue where account = $account and (select at from due) is null
  )
  insert into realtime_queue as q (account, visit_at) select $account::uuid, at from due where at is not null
  on conflict (account) do update set visit_at = excluded.visit_at`)

/** Gives the account its turns. */
export async function wakeQueues(db: Database, account: AccountId): Promise<void> {
  await wakeWebhooks(db, { account })
  await wakeRest(db, { account })
  await wakeRealtimeQueue(db, account)
}

const lockRealtime = changeStatement<OfAccount>('select from realtime_queue where account = $account for update')

/** Gives the account the turns of the messages that wait, or none. Whoever adds one changes its turn: that is locked first. */
export async function wakeRealtimeQueue(tx: Database, account: AccountId): Promise<void> {
  await lockRealtime(tx, { account })
  await wakeRealtime(tx, { account })
}

/** The time of a database, for `hasOlderTransactions`. */
export const readTime = valueStatement<string>('select clock_timestamp()::text as now')

/** Whether transactions run that began before this instant. */
export const hasOlderTransactions = valueStatement<boolean, { since: string }>(`
  select exists (
    select from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
      and pid <> pg_backend_pid() and xact_start < $since::timestamptz
  ) as waits`)

/** Up to where this database has taken in the log; undefined while it reads from an instant on, or not at all. */
export const readTaken = rowStatement<{ incarnation: string | null; sequence: number }>(
  `select incarnation, sequence::float8 as sequence from log_intake where name = 'events' and read_since is null`,
)
