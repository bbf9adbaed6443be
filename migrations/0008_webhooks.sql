-- not additive: it drops the readable secrets of webhooks and divides the ledger
-- Outbound webhooks: who receives what, the ledger of deliveries with its queue, and bulk replays.
--
-- The findings of squawk that are ignored here concern tables which no earlier release still uses.

-- Webhooks ------------------------------------------------------------------------------------------------------------

-- The length of `name` is the API's rule alone: a row from before the release may be longer, and must not stop the
-- migration.
-- Its account and its users may be in another database (docs/decisions/0062-cells.md): an account is checked when a
-- webhook is made, behind the lock of its row.
alter table webhook
  drop constraint webhook_account_fkey,
  drop constraint webhook_created_by_fkey,
  drop constraint webhook_updated_by_fkey,
  -- squawk-ignore ban-drop-not-null
  alter column account drop not null,
  add column description text,
  add column is_global boolean not null default false,
  add column consecutive_failures integer not null default 0,
  add column disabled_at timestamptz(3),
  add column disabled_reason text,
  -- AES-256-GCM under SECRET_KEY; the row's id is bound in.
  add column secret_encrypted text,
  -- Existing webhooks come before every event.
  add column ordinal bigint not null default 0,
  -- The only resources whose events it receives; null for all.
  add column resource_ids text[],
  -- The subscriber's own headers: names in lower case, and all of them sealed like the secret.
  add column header_names text[] not null default '{}',
  -- Members of the account who get mails about it, beside the administrators of the account.
  add column contacts uuid[] not null default '{}',
  add column headers_encrypted text,
  -- The Ed25519 key of asymmetric signatures, sealed like the secret, with its public key (`whpk_...`); null without.
  add column signing_key_encrypted text,
  add column public_key text,
  -- The public key before the last rotation, and until when it is listed beside the present one.
  add column previous_public_key text,
  add column previous_public_key_until timestamptz(3),
  -- Attempts that may start in a second, over all processes; null for any number.
  add column max_per_second integer,
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_max_per_second check (max_per_second between 1 and 1000),
  -- How it receives: the service posts to its URL, or it pulls and has none. Never changes.
  add column mode text not null default 'push' check (mode in ('push', 'pull')),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_pull_without_url check (mode = 'push' or (url = '' and headers_encrypted is null)),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_headers_number check (cardinality(header_names) <= 10),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_headers_sealed check ((headers_encrypted is null) = (cardinality(header_names) = 0)),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_contacts_number check (cardinality(contacts) <= 10),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_signing_key_sealed check ((signing_key_encrypted is null) = (public_key is null)),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_previous_key check ((previous_public_key is null) = (previous_public_key_until is null)
    and (public_key is not null or previous_public_key is null)),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_resource_ids_number check (cardinality(resource_ids) between 1 and 100),
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_description_length check (char_length(description) <= 500),
  add constraint webhook_scope check (is_global or account is not null) not valid;
alter table webhook alter column ordinal set default nextval('recorded_ordinal');

-- Old secrets were stored in plain text and signed nothing that a subscriber checks today: they are removed here, and
-- each old webhook is inactive until its operator rotates the secret, deploys it, and activates the webhook again.
update webhook set
  is_actived = false,
  disabled_at = date_trunc('milliseconds', statement_timestamp()),
  disabled_reason = 'legacy-secret-rotation-required';
-- squawk-ignore ban-drop-column
alter table webhook drop column secret;

-- Webhooks of accounts that are deleted already, as the deletion of an account leaves them from now on.
update webhook set
  disabled_reason = 'account-deleted',
  updated_at = date_trunc('milliseconds', statement_timestamp())
where deleted_at is null and account in (select document_id from account where deleted_at is not null);

-- All webhooks of an account: its deletion and the explanation of a routing look up the inactive and the deleted ones too.
create index webhook_account_idx on webhook (account, created_at) where account is not null;
create index webhook_owner_idx on webhook (account, created_at)
  where not is_global and deleted_at is null and account is not null;
-- Webhooks that the service disabled itself.
create index webhook_auto_disabled_idx on webhook (document_id)
  where deleted_at is null and not is_actived and disabled_reason = 'consecutive-failures';
create index webhook_key_idx on webhook (split_part(secret_encrypted, '.', 2)) where secret_encrypted is not null;
create index webhook_headers_key_idx on webhook (split_part(headers_encrypted, '.', 2))
  where headers_encrypted is not null;
create index webhook_signing_key_idx on webhook (split_part(signing_key_encrypted, '.', 2))
  where signing_key_encrypted is not null;
create index webhook_created_idx on webhook (created_at);
-- Lists sort and compare it byte by byte, alike in every database.
create index webhook_url_idx on webhook (url collate "C");
create index webhook_global_idx on webhook (created_at) where is_global;
create index webhook_inactive_idx on webhook (created_at) where not is_actived;
create index webhook_disabled_idx on webhook (disabled_at) where disabled_at is not null;
create index webhook_disabled_reason_idx on webhook (disabled_reason, created_at) where disabled_reason is not null;

create trigger invalidate after insert or update of is_actived, deleted_at or delete on webhook
  for each statement execute function invalidate_read_subscriptions();

-- Number of webhooks, for the dashboard: counted as they change, because a count of all takes longer with each one. The
-- sums of all rows are the counts. Each change adds a row of its own, so that no change waits for another, and the
-- sweep adds them up.
create table webhook_count (
  number bigint generated always as identity primary key,
  active bigint not null,
  inactive bigint not null,
  -- Of the inactive ones those that the service disabled.
  auto_disabled bigint not null
);

-- Counts of a webhook.
create function webhook_counts_as(given webhook) returns table (active int, inactive int, auto_disabled int)
language sql immutable rows 1 as $$
  select (given.deleted_at is null and given.is_actived)::int,
    (given.deleted_at is null and not given.is_actived)::int,
    (given.deleted_at is null and not given.is_actived and given.disabled_reason is not distinct from 'consecutive-failures')::int
$$;

create function count_webhooks() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into webhook_count (active, inactive, auto_disabled)
    select sum(c.active), sum(c.inactive), sum(c.auto_disabled)
    from changed w cross join lateral webhook_counts_as(w::webhook) c having count(*) > 0;
  else
    insert into webhook_count (active, inactive, auto_disabled)
    select -sum(c.active), -sum(c.inactive), -sum(c.auto_disabled)
    from changed w cross join lateral webhook_counts_as(w::webhook) c having count(*) > 0;
  end if;
  return null;
end $$;

create function count_webhook_change() returns trigger language plpgsql as $$
begin
  insert into webhook_count (active, inactive, auto_disabled)
  select n.active - o.active, n.inactive - o.inactive, n.auto_disabled - o.auto_disabled
  from webhook_counts_as(new) n, webhook_counts_as(old) o;
  return null;
end $$;

create function forget_webhook_counts() returns trigger language plpgsql as $$
begin
  delete from webhook_count;
  return null;
end $$;

create trigger webhook_count_truncate after truncate on webhook
  for each statement execute function forget_webhook_counts();
create trigger webhook_count_insert after insert on webhook referencing new table as changed
  for each statement execute function count_webhooks();
create trigger webhook_count_delete after delete on webhook referencing old table as changed
  for each statement execute function count_webhooks();
create trigger webhook_count_update after update on webhook for each row
  when (old.is_actived <> new.is_actived or old.deleted_at is distinct from new.deleted_at
    or old.disabled_reason is distinct from new.disabled_reason)
  execute function count_webhook_change();

-- The triggers hold a lock on the webhooks until the end, so nothing is missed and nothing counted twice.
insert into webhook_count (active, inactive, auto_disabled)
select sum(c.active), sum(c.inactive), sum(c.auto_disabled)
from webhook w cross join lateral webhook_counts_as(w) c having count(*) > 0;

-- Subscriptions -------------------------------------------------------------------------------------------------------

-- Account of the subscription's webhook; null for a global one. The router reads an index of it, so an event costs its
-- own routes, whatever other accounts subscribe to.
alter table webhook_event add column account uuid;
update webhook_event s set account = w.account from webhook w where w.document_id = s.webhook;

-- The webhooks of an event type and an account in the order of their ids: a part of a fan-out reads only its own.
create index webhook_event_fan_out_idx on webhook_event (event, account, webhook)
  where deleted_at is null and event is not null;
-- The list alone states its condition in this form: the router must not take this index for that of event types and accounts.
create index webhook_event_account_idx on webhook_event (account, created_at)
  where num_nonnulls(deleted_at) = 0 and account is not null;
create index webhook_event_created_idx on webhook_event (created_at);
create index webhook_event_updated_idx on webhook_event (updated_at);

create function copy_owner_to_subscription() returns trigger language plpgsql as $$
begin
  -- The lock waits for a change of the webhook, and blocks a concurrent one: the copy never lags behind.
  select case when w.is_global then null else w.account end into new.account
  from webhook w where w.document_id = new.webhook for share;
  return new;
end $$;
create trigger copy_owner before insert on webhook_event
  for each row execute function copy_owner_to_subscription();

create function copy_owner_to_subscriptions() returns trigger language plpgsql as $$
begin
  update webhook_event set account = case when new.is_global then null else new.account end
  where webhook = new.document_id;
  return null;
end $$;
create trigger copy_owner after update of account, is_global on webhook
  for each row when (old.account is distinct from new.account or old.is_global <> new.is_global)
  execute function copy_owner_to_subscriptions();

create trigger invalidate after insert or update or delete on webhook_event
  for each statement execute function invalidate_read_subscriptions();

-- The links of a webhook to event types, deleted ones too. Read behind the lock of the webhook.
create function links_of(subscriber uuid) returns setof webhook_event language plpgsql volatile as $$
begin
  return query select s.* from webhook_event s where s.webhook = subscriber;
end $$;

-- How many webhooks an account has, how many subscriptions beside those to webhook.test, which every webhook has, and its
-- own limits with the time of their last change. The subscriptions of a webhook are looked up by its id (`num_nonnulls`).
create function account_use(asked uuid)
returns table (used_webhooks integer, used_subscriptions integer, webhooks integer, subscriptions integer,
  published_per_minute integer, replays_per_minute integer, ledger_retention_days integer, set_at timestamptz)
language plpgsql volatile rows 1 as $$
begin
  return query select
    (select count(*)::int from webhook w where w.account = asked and not w.is_global and w.deleted_at is null),
    (select count(*)::int from webhook w join webhook_event s on s.webhook = w.document_id
      join event e on e.document_id = s.event
      where w.account = asked and not w.is_global and w.deleted_at is null and num_nonnulls(s.deleted_at) = 0
        and e.internal <> 'webhook.test'),
    l.webhooks, l.subscriptions, l.published_per_minute, l.replays_per_minute, l.ledger_retention_days, l.updated_at
  from (select) one left join account_limit l on l.account = asked;
end $$;

-- Ledger --------------------------------------------------------------------------------------------------------------

-- Waiting rows have a table apart from the ended ones: ended rows are written once, and the table that is updated and
-- searched stays small.

create table webhook_dispatch_open (
  document_id uuid primary key,
  -- Without a reference: it would lock the row of every webhook that an event is routed to.
  webhook uuid not null,
  event_id uuid not null,
  event text not null,
  account uuid,
  status text not null check (status in ('pending', 'retrying')),
  attempts integer not null default 0,
  -- When the row is due; null while a worker posts it.
  next_attempt_at timestamptz(3),
  last_attempt_at timestamptz(3),
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  delivered_at timestamptz(3),
  is_test boolean not null default false,
  -- Origin of the due attempt: the schedule, an operator's test or replay. A replay is exactly one POST.
  attempt_trigger text not null default 'schedule' check (attempt_trigger in ('schedule', 'test', 'replay')),
  replay_job uuid,
  -- The claim: the worker that posts the row, and the fence that makes a late result of an older claim void.
  lease_owner text,
  fence integer not null default 0,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  -- Whether the row was waiting on its schedule when a replay made it due: the schedule continues after that attempt.
  keeps_schedule boolean not null default false,
  -- Of a row that its subscriber pulls: when it ends unfetched. Null for a row that a worker posts.
  kept_until timestamptz(3),
  -- The end of the lease under which it was pulled; null while it waits.
  leased_until timestamptz(3),
  check ((lease_owner is null and leased_until is null) = (next_attempt_at is not null)),
  check (leased_until is null or (kept_until is not null and lease_owner is null)),
  -- The contract's five, whatever the code does: only a replay exceeds them.
  constraint webhook_dispatch_attempts check (attempt_trigger = 'replay' or attempts <= 5)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- No index but the primary key contains `document_id`: for an empty table the planner estimates another one as cheaper,
-- and a statement that was planned then would read all of that index for each row.
create index webhook_dispatch_open_due_idx on webhook_dispatch_open (webhook, next_attempt_at);
create index webhook_dispatch_open_lease_idx on webhook_dispatch_open (lease_owner, webhook)
  where lease_owner is not null;
-- Tests are posted although their webhook is inactive, so they have a query of their own.
create index webhook_dispatch_open_test_idx on webhook_dispatch_open (next_attempt_at)
  where is_test and kept_until is null and next_attempt_at is not null;
-- Rows that are pulled: those to end, and the leases.
create index webhook_dispatch_open_kept_idx on webhook_dispatch_open (kept_until) where kept_until is not null;
create index webhook_dispatch_open_leased_idx on webhook_dispatch_open (leased_until) where leased_until is not null;
create index webhook_dispatch_open_created_idx on webhook_dispatch_open (created_at);
create index webhook_dispatch_open_account_idx on webhook_dispatch_open (account, created_at) where account is not null;
create index webhook_dispatch_open_event_id_idx on webhook_dispatch_open (event_id);
create index webhook_dispatch_open_replay_job_idx on webhook_dispatch_open (replay_job) where replay_job is not null;
-- Replays are few rows, which a list of them would look for among all.
create index webhook_dispatch_open_replay_idx on webhook_dispatch_open (created_at) where attempt_trigger = 'replay';

-- Tells the processes whose subscribers wait for the rows of a webhook that there is one. Sent with the row, since a
-- router of another process may write it; a row that a worker posts sends nothing.
create function announce_pull() returns trigger language plpgsql as $$
begin
  perform pg_notify('signalbox_change', 'w:' || new.webhook);
  return null;
end $$;
create trigger announce_pull after insert on webhook_dispatch_open
  for each row when (new.kept_until is not null) execute function announce_pull();

-- The table of the old sender holds the ended deliveries: inserted when they end, deleted by retention, removed again
-- by a replay.
-- squawk-ignore renaming-column
alter table webhook_dispatch rename column retry to attempts;
alter table webhook_dispatch
  drop constraint webhook_dispatch_webhook_fkey,
  add column event_id uuid,
  add column account uuid,
  add column last_attempt_at timestamptz(3),
  add column last_status_code integer,
  add column last_duration_ms integer,
  -- Null for the end of a success.
  add column delivered_at timestamptz(3),
  add column ended_at timestamptz(3),
  add column is_test boolean not null default false,
  -- Null for the schedule; its old rows say so.
  add column attempt_trigger text default 'schedule',
  add column replay_job uuid,
  add column fence integer not null default 0,
  -- The attempt that ended the delivery is an entry of the log in this row: number, trigger, start, duration, status and
  -- failure class are there already. Columns of fixed width come first, so that none is padded.
  add column first_byte_ms real,
  add column total_ms real,
  add column dns_ms real,
  add column connect_ms real,
  add column tls_ms real,
  add column worker text,
  add column response_excerpt text,
  add column response_headers jsonb;

-- The old sender knew other words. What it had delivered stays delivered; all else ended with it.
update webhook_dispatch set
  status = case when status in ('success', 'delivered', 'sent') then 'success' else 'failed' end,
  delivered_at = case when status in ('success', 'delivered', 'sent') then updated_at end,
  ended_at = updated_at,
  event_id = document_id;

alter table webhook_dispatch
  -- squawk-ignore adding-not-nullable-field
  alter column event_id set not null,
  alter column attempt_trigger drop default;
-- squawk-ignore renaming-table
alter table webhook_dispatch rename to webhook_dispatch_ended;
alter index webhook_dispatch_pkey rename to webhook_dispatch_ended_pkey;
alter table webhook_dispatch_ended
  -- squawk-ignore adding-not-nullable-field
  alter column ended_at set not null,
  -- squawk-ignore constraint-missing-not-valid
  add constraint webhook_dispatch_ended_status check (status in ('success', 'exhausted', 'failed', 'cancelled'));

-- Ascending indexes grow at their right end, which costs less; they are read backwards.
create index webhook_dispatch_ended_created_idx on webhook_dispatch_ended (created_at);
create index webhook_dispatch_ended_webhook_idx on webhook_dispatch_ended (webhook, created_at);
create index webhook_dispatch_ended_account_idx on webhook_dispatch_ended (account, created_at) where account is not null;
create index webhook_dispatch_ended_event_id_idx on webhook_dispatch_ended (event_id);
-- Nearly all rows are successes, which every other index finds: this one holds the rest.
create index webhook_dispatch_ended_status_idx on webhook_dispatch_ended (status, created_at, document_id)
  where status <> 'success';
-- The same of an account.
create index webhook_dispatch_ended_account_status_idx
  on webhook_dispatch_ended (account, status, created_at, document_id) where status <> 'success' and account is not null;
-- The most recent failures, for the dashboard, and those of an account: of deliveries that succeed they hold nothing.
create index webhook_dispatch_ended_failed_idx on webhook_dispatch_ended (ended_at, document_id)
  where status in ('exhausted', 'failed');
create index webhook_dispatch_ended_account_failed_idx on webhook_dispatch_ended (account, ended_at)
  where status in ('exhausted', 'failed') and account is not null;
-- Exhausted deliveries of the last 24 hours, without the failed ones beside them.
create index webhook_dispatch_exhausted_idx on webhook_dispatch_ended (ended_at) where status = 'exhausted';
-- Replays, and those of an account: of deliveries by the schedule they hold nothing.
create index webhook_dispatch_ended_replay_idx on webhook_dispatch_ended (created_at) where attempt_trigger = 'replay';
create index webhook_dispatch_ended_account_replay_idx on webhook_dispatch_ended (account, created_at)
  where attempt_trigger = 'replay' and account is not null;

-- The ledger: every row is in one of the two tables.
create view webhook_dispatch as
select document_id, webhook, event_id, event, account, status, attempts, null::timestamptz(3) as next_attempt_at,
  last_attempt_at, last_status_code, last_error, last_duration_ms,
  coalesce(delivered_at, case when status = 'success' then ended_at end)::timestamptz(3) as delivered_at, ended_at, is_test,
  coalesce(attempt_trigger, 'schedule') as attempt_trigger, replay_job, null::text as lease_owner, fence, created_at,
  updated_at
from webhook_dispatch_ended
union all
select document_id, webhook, event_id, event, account, status, attempts, next_attempt_at, last_attempt_at, last_status_code,
  last_error, last_duration_ms, delivered_at, null::timestamptz(3) as ended_at, is_test, attempt_trigger, replay_job,
  lease_owner, fence, created_at, updated_at
from webhook_dispatch_open;

-- The other attempts. Without a reference: a delivery moves from one table of the ledger to the other.
create table webhook_attempt (
  dispatch uuid not null,
  attempt integer not null,
  attempt_trigger text not null,
  worker text not null,
  started_at timestamptz(3) not null,
  duration_ms integer not null,
  status_code integer,
  error_class text,
  response_excerpt text,
  response_headers jsonb,
  timings jsonb,
  primary key (dispatch, attempt)
);

create view webhook_attempt_log as
select dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code, error_class, response_excerpt,
  response_headers, timings
from webhook_attempt
union all
select document_id, attempts, coalesce(attempt_trigger, 'schedule'), worker, last_attempt_at, last_duration_ms,
  last_status_code, last_error, response_excerpt, response_headers,
  case when total_ms is not null then
    jsonb_build_object('dnsMs', dns_ms, 'connectMs', connect_ms, 'tlsMs', tls_ms, 'firstByteMs', first_byte_ms,
      'totalMs', total_ms)
  end
from webhook_dispatch_ended
where worker is not null;

-- Number of deliveries of each minute by current status, and of changes into it. The dashboard adds up a day of it, at
-- any size of the ledger; the metric adds up all of it. Processes count on shards, so that they seldom wait for each
-- other, and one shard may subtract what another one added.
create table webhook_delivery_minute (
  -- Of the creation of the deliveries; 1970 holds what is older than the dashboard looks back.
  minute timestamptz(3) not null,
  status text not null,
  shard integer not null,
  -- Only grows: the metric.
  came bigint not null,
  -- The rows of the ledger.
  deliveries bigint not null,
  primary key (minute, status, shard)
);
-- The old ledger: in 1970 as the metric, and what the dashboard looks back at as rows.
insert into webhook_delivery_minute
  select 'epoch', status, 0, count(*), 0 from webhook_dispatch group by status;
insert into webhook_delivery_minute
  select date_trunc('minute', created_at), status, 0, 0, count(*) from webhook_dispatch
  where created_at > statement_timestamp() - interval '25 hours' group by 1, 2;

-- Outcomes of attempts, one row for each settled batch: appended, so that settling processes never wait for each other,
-- and added up within seconds (`foldOutcomes`). The arrays have one entry for each group of equal attempts.
create table webhook_outcome_batch (
  number bigint generated always as identity primary key,
  settled_at timestamptz(3) not null,
  webhooks uuid[] not null,
  -- The account of the webhook and of the delivery; null where they differ, and for global webhooks.
  owners uuid[] not null,
  statuses text[] not null,
  causes text[] not null,
  -- Of attempts that got an answer: the place of their duration among the bounds of the histogram.
  durations integer[] not null,
  events text[] not null,
  counts integer[] not null
);

-- Sums of outcomes: of an account, or of everything (the nil UUID), by minute for two hours, by hour for two days, by 6 hours
-- for a week and by day for a month. A row is there only where something was counted.
create table webhook_outcome (
  scope uuid not null,
  width text not null check (width in ('minute', 'hour', 'quarter', 'day')),
  at timestamptz(3) not null,
  -- A status, `cause:<failure class>`, or `duration:<place>`.
  measure text not null,
  count bigint not null,
  primary key (scope, width, at, measure)
) with (fillfactor = 80);
create index webhook_outcome_at_idx on webhook_outcome (width, at);

-- Attempts of each webhook by event type and by what came of them: those of an hour, which the maintenance adds to those of their
-- day after 25 hours, for a month. An attempt stands in one row, so a range is the sum of all rows since its start.
create table webhook_outcome_hour (
  webhook uuid not null,
  hour timestamptz(3) not null,
  event text not null,
  success integer not null,
  retrying integer not null,
  failed integer not null,
  last_at timestamptz(3) not null,
  primary key (webhook, hour, event)
) with (fillfactor = 80);
create index webhook_outcome_hour_at_idx on webhook_outcome_hour (hour);

create table webhook_outcome_day (
  webhook uuid not null,
  day timestamptz(3) not null,
  event text not null,
  attempts bigint not null,
  failed bigint not null,
  primary key (webhook, day, event)
) with (fillfactor = 80);
create index webhook_outcome_day_at_idx on webhook_outcome_day (day);

-- Attempts of a webhook that did not deliver, by answer, and of an account or of everything (the nil UUID) by event type, for a
-- month: first in those of their 5 minutes, which the maintenance adds to those of their hour after an hour, and these to those of
-- their day after a day.
create table webhook_breakdown (
  subject uuid not null,
  at timestamptz(3) not null,
  width text not null check (width in ('five_minutes', 'hour', 'day')),
  -- `answer:<failure class>`, or `event:<event type>`.
  measure text not null,
  attempts bigint not null,
  failed bigint not null,
  primary key (subject, at, width, measure)
) with (fillfactor = 80);
create index webhook_breakdown_at_idx on webhook_breakdown (width, at);

-- What was recorded of a webhook before, behind its lock, of deliveries that ended after those that are recorded now
-- (docs/contract/delivery.md#failure-count): the last success after `failed_at`, among the last deliveries, and the failures
-- after `succeeded_at` that counted. `leaving` are the deliveries that are recorded now. The last deliveries are read in the
-- order of their index, not all of them to be sorted; failures by when they ended, not all of the webhook.
create function later_ends(of_webhook uuid, failed_at timestamptz, succeeded_at timestamptz, leaving uuid[],
  last_deliveries integer, out last_success_at timestamptz, out failures_at timestamptz[])
language plpgsql volatile set enable_bitmapscan = off set enable_sort = off as $$
begin
  if failed_at is not null then
    select max(l.ended_at) into last_success_at from (
      select d.status, d.ended_at from webhook_dispatch_ended d
      where d.webhook = of_webhook and not d.document_id = any(leaving)
      order by d.created_at desc limit last_deliveries
    ) l where l.status = 'success' and l.ended_at > failed_at;
  end if;
  failures_at := array(
    select d.ended_at from webhook_dispatch_ended d
    where d.status in ('exhausted', 'failed') and d.ended_at > succeeded_at and (d.webhook = of_webhook) is true
      and coalesce(d.attempt_trigger, 'schedule') = 'schedule' and not d.is_test and not d.document_id = any(leaving));
end $$;

-- Queue ---------------------------------------------------------------------------------------------------------------

-- One row for each webhook with waiting rows: the order in which webhooks are served. `visit_at` is the due time of its
-- earliest row, or the time at which it was last served, whichever is later, so that webhooks take turns.
create table webhook_queue (
  webhook uuid primary key,
  visit_at timestamptz(3) not null,
  -- Its webhook is inactive: its rows rest.
  is_held boolean not null default false,
  -- When the throttle of its webhook lets the next attempt start; null while it lets one start now, and without a limit.
  free_at timestamptz(3),
  -- The worker that visits a throttled webhook; others do so when it is late, so that not all of them come for each attempt.
  visitor text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
create index webhook_queue_visit_idx on webhook_queue (visit_at) where not is_held;
create index webhook_queue_visitor_idx on webhook_queue (visit_at) where visitor is not null;

create function release_webhook_queue() returns trigger language plpgsql as $$
begin
  update webhook_queue set is_held = false where webhook = new.document_id;
  return null;
end $$;
create trigger release_queue after update of is_actived on webhook
  for each row when (new.is_actived and not old.is_actived) execute function release_webhook_queue();

-- The claims of webhooks with a limit a second. A row is written by a claim that has locked the row of the webhook in
-- `webhook_queue`, so no two claims count at once.
create table webhook_throttle (
  webhook uuid primary key,
  -- Those of the last second, the oldest first: their times and numbers of attempts.
  claimed_at timestamptz(3)[] not null,
  counts integer[] not null,
  -- When the next attempt is due, so that they are spread over the second.
  next_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);

-- The claims of a webhook that count at `now_at`: those of the second that ends with it. One that lies more than a second
-- ahead was made before the clock of the database was set back.
create function counted_claims(subscriber uuid, now_at timestamptz) returns table (claimed_at timestamptz, attempts integer)
language plpgsql volatile rows 100 as $$
begin
  return query select c.claimed_at, c.attempts
  from webhook_throttle t cross join lateral unnest(t.claimed_at, t.counts) as c (claimed_at, attempts)
  where t.webhook = subscriber and c.claimed_at > now_at - interval '1 second'
    and c.claimed_at <= now_at + interval '1 second';
end $$;

-- When the next attempt of a webhook is due. What a late visit missed is made up for, up to a second; a webhook for which
-- nothing waited gets up to 100 ms of the past, so that it does not start with all attempts of a second at once.
create function throttle_due(subscriber uuid, now_at timestamptz) returns timestamptz language plpgsql volatile as $$
declare
  earliest timestamptz := now_at - case
    when exists (select from webhook_queue q where q.webhook = subscriber and q.free_at is not null) then interval '1 second'
    else interval '100 milliseconds' end;
begin
  return coalesce(
    (select greatest(t.next_at, earliest) from webhook_throttle t
      where t.webhook = subscriber and t.next_at <= now_at + interval '1 second'),
    now_at - interval '100 milliseconds');
end $$;

-- Attempts that a webhook with this limit may start at `now_at`: those that are due, while no second has more than the limit.
create function throttle_room(subscriber uuid, per_second integer, now_at timestamptz) returns integer
language plpgsql volatile as $$
declare
  due_at timestamptz := throttle_due(subscriber, now_at);
begin
  if due_at > now_at then
    return 0;
  end if;
  return least(
    floor(extract(epoch from now_at - due_at) * per_second) + 1,
    (select greatest(per_second - coalesce(sum(c.attempts), 0), 0) from counted_claims(subscriber, now_at) c));
end $$;

-- Counts the `taken` attempts that were claimed at `now_at`. Returns when to claim again; null for now. Attempts that become
-- due within 100 ms are claimed together, and those of all webhooks at the same instants, so that a process claims for limits
-- ten times a second, whatever they are. Claims of 10 ms are one entry, with the time of the last of them: a hundred at most.
create function take_throttle(subscriber uuid, per_second integer, now_at timestamptz, taken integer) returns timestamptz
language plpgsql volatile as $$
declare
  due_at timestamptz := throttle_due(subscriber, now_at) + taken * interval '1 second' / per_second;
  times timestamptz[];
  numbers integer[];
  free_at timestamptz;
begin
  select array_agg(e.claimed_at order by e.claimed_at), array_agg(e.attempts order by e.claimed_at) into times, numbers
  from (
    select max(c.claimed_at) as claimed_at, sum(c.attempts)::integer as attempts
    from (
      select k.claimed_at, k.attempts from counted_claims(subscriber, now_at) k
      union all
      select now_at, taken where taken > 0
    ) c
    group by date_bin(interval '10 milliseconds', c.claimed_at, timestamptz 'epoch')
  ) e;
  if taken > 0 then
    insert into webhook_throttle (webhook, claimed_at, counts, next_at) values (subscriber, times, numbers, due_at)
    on conflict (webhook) do update
      set claimed_at = excluded.claimed_at, counts = excluded.counts, next_at = excluded.next_at;
  end if;
  -- The end of the second of the first claim without which the later ones are below the limit.
  select min(e.claimed_at) + interval '1 second' into free_at from (
    select c.claimed_at, sum(c.attempts) over () as all_attempts,
      sum(c.attempts) over (order by c.claimed_at desc) - c.attempts as later
    from unnest(times, numbers) as c (claimed_at, attempts)
  ) e where e.all_attempts >= per_second and e.later < per_second;
  if due_at > now_at then
    free_at := greatest(free_at,
      date_bin(interval '100 milliseconds', due_at + interval '99999 microseconds', timestamptz 'epoch'));
  end if;
  return free_at;
end $$;

-- Rows that other workers post, by webhook. The lock is held until the transaction ends, and a volatile function reads
-- what was committed when it runs: so claims of all processes count each other.
create function claims_of_others(worker text) returns table (webhook uuid, in_flight integer) language plpgsql volatile
as $$
begin
  perform pg_advisory_xact_lock(7320115);
  return query
    select o.webhook, count(*)::integer from (
      select d.webhook from webhook_dispatch_open d where d.lease_owner < worker
      union all
      select d.webhook from webhook_dispatch_open d where d.lease_owner > worker
    ) o group by o.webhook;
end $$;

-- An event for many webhooks is routed in parts: rows come and go, few at a time.
create table webhook_fan_out (
  event_id uuid primary key,
  -- Webhooks are processed in the order of their ids: those up to this one are done; null before the first part.
  reached uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);

-- Bulk replays --------------------------------------------------------------------------------------------------------

create table replay_job (
  document_id uuid primary key,
  status text not null check (status in ('running', 'paused', 'done', 'cancelled', 'failed')),
  filters text[] not null,
  confirm_duplicate boolean not null,
  total integer not null,
  -- The rows of a job are numbered; those up to here are dealt with. It moves in the transaction that replays them.
  processed integer not null default 0,
  replayed integer not null default 0,
  skipped integer not null default 0,
  skipped_reasons jsonb not null default '{}',
  -- Consecutive failed rounds; a few of them end the job as failed.
  failures integer not null default 0,
  last_error text,
  -- A user of home.
  created_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  ended_at timestamptz(3),
  -- The accounts to whose ledger rows the replay is limited; null for one over all accounts.
  accounts uuid[],
  check (processed between 0 and total and replayed + skipped = processed)
);
create index replay_job_created_idx on replay_job (created_at desc, document_id desc);
create index replay_job_running_idx on replay_job (document_id) where status = 'running';
-- A bulk replay for some accounts is found by the first of them.
create index replay_job_account_idx on replay_job ((accounts[1]), created_at) where accounts is not null;

-- The rows of a job, fixed when it is made. No reference to the ledger: retention and purge do not wait for a job.
create table replay_job_item (
  job uuid not null references replay_job (document_id) on delete cascade,
  position integer not null,
  dispatch uuid not null,
  primary key (job, position),
  unique (job, dispatch)
);

-- Mails ---------------------------------------------------------------------------------------------------------------

-- What mails tell of a webhook (docs/contract/delivery.md#mails): written with the change of its failure
-- count, one of a kind for each incident. `failing` stays until the incident ends.
create table webhook_mail_notice (
  webhook uuid not null references webhook (document_id) on delete cascade,
  -- `failing`, `disabled` or `recovered`.
  kind text not null,
  -- The nil UUID for global webhooks, also in the next two tables.
  account uuid not null,
  -- The delivery that caused it, with its failure.
  dispatch uuid not null,
  last_error text,
  last_status_code integer,
  -- Whether its account has a turn.
  is_queued boolean not null default false,
  -- When its mails were written to the outbox.
  mailed_at timestamptz(3),
  -- In a cell: home is writing its mails, or a process died while it was.
  is_taken boolean not null default false,
  created_at timestamptz(3) not null,
  primary key (webhook, kind)
);
create index webhook_mail_notice_fresh_idx on webhook_mail_notice (created_at) where not is_queued;
create index webhook_mail_notice_account_idx on webhook_mail_notice (account, created_at)
  where is_queued and mailed_at is null;

-- When an account gets its next mails, and when it got the last ones: each tells of all webhooks that changed in between.
create table webhook_mail_turn (
  account uuid primary key,
  due_at timestamptz(3),
  mailed_at timestamptz(3)
);
create index webhook_mail_turn_due_idx on webhook_mail_turn (due_at) where due_at is not null;
create index webhook_mail_turn_mailed_idx on webhook_mail_turn (mailed_at) where due_at is null;

-- To whom a mail of the outbox goes, and what it is about: judged again when it is sent.
create table webhook_mail_recipient (
  mail uuid primary key references mail_outbox (document_id) on delete cascade,
  "user" uuid not null,
  account uuid not null,
  webhooks uuid[] not null
);

-- In home: the notices of cells whose mails are in the outbox, so that no notice is mailed twice.
create table webhook_mail_told (
  webhook uuid not null,
  kind text not null,
  -- `created_at` of the notice.
  noticed_at timestamptz(3) not null,
  told_at timestamptz(3) not null,
  primary key (webhook, kind, noticed_at)
);
create index webhook_mail_told_told_idx on webhook_mail_told (told_at);

-- What a user wants of these mails. Without a row: all of them, in English.
create table webhook_mail_setting (
  "user" uuid primary key references "user" (document_id) on delete cascade,
  is_stopped boolean not null default false,
  stopped_webhooks uuid[] not null default '{}',
  language text not null default 'en' check (language in ('en', 'de')),
  -- Notices in mails that the limit of the address held back; the next mail tells their number.
  held_notices integer not null default 0,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  constraint webhook_mail_setting_number check (cardinality(stopped_webhooks) <= 1000)
);

-- Notes what a mail is to tell, behind the lock of the webhook. A webhook that failed and recovered before its mail was
-- written causes none.
create function note_webhook_mail(of_webhook uuid, of_kind text, of_account uuid, of_dispatch uuid, of_error text,
  of_status integer, at timestamptz) returns void language plpgsql volatile as $$
declare
  was_told boolean;
begin
  if of_kind <> 'failing' then
    delete from webhook_mail_notice n where n.webhook = of_webhook and n.kind = 'failing'
      returning n.mailed_at is not null or n.is_taken into was_told;
    if of_kind = 'recovered' and was_told is not true then
      return;
    end if;
    delete from webhook_mail_notice n where n.webhook = of_webhook and n.kind = of_kind;
  end if;
  insert into webhook_mail_notice (webhook, kind, account, dispatch, last_error, last_status_code, created_at)
  values (of_webhook, of_kind, of_account, of_dispatch, of_error, of_status, at)
  on conflict (webhook, kind) do nothing;
end $$;

-- Who gets mails about webhooks of an account: its administrators, the first members first, then the members that a
-- webhook names. An address that its user has not verified gets none.
create function webhook_mail_readers(asked uuid, named uuid[], administrator text, at_most integer)
returns table ("user" uuid, email text, is_administrator boolean, stopped_webhooks uuid[], language text)
language plpgsql volatile rows 20 as $$
begin
  return query
  with reader as (
    select m."user", m.created_at, exists (
      select from account_member_role mr where mr.member = m.document_id
        and (select r.name = administrator from role r where r.document_id = mr.role)) as is_administrator
    from account_member m where m.account = asked
  )
  select u.document_id, u.email, x.is_administrator, coalesce(s.stopped_webhooks, '{}'), coalesce(s.language, 'en')
  from reader x
  cross join lateral (select * from "user" y where y.document_id = x."user" offset 0) u
  left join lateral (select * from webhook_mail_setting z where z."user" = x."user" offset 0) s on true
  where (x.is_administrator or x."user" = any(named)) and u.is_actived and u.deleted_at is null
    and u.email_verified_at is not null and not coalesce(s.is_stopped, false)
  order by not x.is_administrator, x.created_at, u.document_id limit at_most;
end $$;

-- Whether a role of a user that holds beyond accounts has one of these patterns.
create function holds_beyond_accounts(holder uuid, patterns text[]) returns boolean language plpgsql volatile as $$
begin
  return exists (select from user_role ur
    cross join lateral (select x.is_account_scoped from role x where x.document_id = ur.role offset 0) r
    where ur."user" = holder and not r.is_account_scoped
      and exists (select from role_permission p where p.role = ur.role and p.pattern = any(patterns)));
end $$;

-- Who gets mails about global webhooks: the holders of a role beyond accounts with one of these patterns, the first holders
-- first, and each once.
create function webhook_mail_operators(patterns text[], at_most integer)
returns table ("user" uuid, email text, stopped_webhooks uuid[], language text)
language plpgsql volatile rows 20 as $$
begin
  return query
  with holder as (
    select h."user", min(h.created_at) as since
    from role r
    cross join lateral (
      select ur."user", ur.created_at from user_role ur
      cross join lateral (select * from "user" y where y.document_id = ur."user" offset 0) u
      where ur.role = r.document_id and u.is_actived and u.deleted_at is null and u.email_verified_at is not null
        and not coalesce((select z.is_stopped from webhook_mail_setting z where z."user" = ur."user"), false)
      order by ur.created_at limit at_most
    ) h
    where not r.is_account_scoped
      and exists (select from role_permission p where p.role = r.document_id and p.pattern = any(patterns))
    group by h."user" order by min(h.created_at), h."user" limit at_most
  )
  select u.document_id, u.email, coalesce(s.stopped_webhooks, '{}'), coalesce(s.language, 'en')
  from holder h
  cross join lateral (select * from "user" y where y.document_id = h."user" offset 0) u
  left join lateral (select * from webhook_mail_setting z where z."user" = h."user" offset 0) s on true
  order by h.since, h."user";
end $$;
