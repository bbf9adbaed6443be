-- not additive: the ledger is divided into two tables
-- Rows that wait are kept apart from those that ended: what ended is written once, and what is
-- updated and looked through stays small.

-- Events --------------------------------------------------------------------------------------------------------------

-- The events that wait for their routing, oldest first. Rows come and go all the time, so they are vacuumed early.
create table event_queue (
  event_id uuid primary key
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
insert into event_queue select document_id from event_occurrence where routed_at is null;
drop index event_occurrence_unrouted_idx;
-- `routed_at`, in no index now, is set in place where its page has room.
alter table event_occurrence set (fillfactor = 80);

drop index event_occurrence_listed_idx;
create index event_occurrence_created_idx on event_occurrence (created_at);

-- Subscriptions -------------------------------------------------------------------------------------------------------

-- Whose events the webhook of a subscription receives: its account, or null for a global one. The router reads an index
-- of it, so an event costs what it is routed to, whatever other accounts subscribe to.
alter table webhook_event add column account uuid;
update webhook_event s set account = w.account from webhook w where w.document_id = s.webhook and not w.is_global;
drop index webhook_event_event_idx;
create index webhook_event_route_idx on webhook_event (event, account) where deleted_at is null;

create function copy_owner_to_subscription() returns trigger language plpgsql as $$
begin
  -- The lock waits for a change of the webhook, and holds one up that comes now: the copy never lags behind.
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

drop index webhook_created_idx;
create index webhook_created_idx on webhook (created_at);

-- Ledger --------------------------------------------------------------------------------------------------------------

alter table webhook_attempt drop constraint webhook_attempt_dispatch_fkey;

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
  attempt_trigger text not null default 'schedule' check (attempt_trigger in ('schedule', 'test', 'replay')),
  replay_job uuid,
  -- The claim: the worker that posts the row, and the fence that makes a late result of an older claim void.
  lease_owner text,
  fence integer not null default 0,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  check ((lease_owner is null) = (next_attempt_at is not null)),
  -- The contract's five, whatever the code does: only a replay exceeds them. Older rows keep what they counted.
  constraint webhook_dispatch_attempts check (attempt_trigger = 'replay' or attempts <= 5)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Workers that post, each for as long as it says so; claims of one whose lease ended, or that is gone, are made again.
create table delivery_worker (
  worker_id text primary key,
  lease_until timestamptz(3) not null,
  -- Whether it holds an advisory lock for as long as its connection lives: then a killed one is noticed at once.
  has_lock boolean not null default false
);

insert into delivery_worker
  select distinct lease_owner, date_trunc('milliseconds', statement_timestamp()) from webhook_dispatch
  where lease_until is not null and lease_owner is not null;

alter table webhook_dispatch drop constraint webhook_dispatch_attempts;
insert into webhook_dispatch_open
  select document_id, webhook, event_id, event, account, status, attempts,
    case when lease_until is null then coalesce(next_attempt_at, created_at) end, last_attempt_at, last_status_code,
    last_error, last_duration_ms, delivered_at, is_test, attempt_trigger, replay_job,
    case when lease_until is not null then coalesce(lease_owner, 'unknown') end, fence, created_at, updated_at
  from webhook_dispatch where status in ('pending', 'retrying');
delete from webhook_dispatch where status in ('pending', 'retrying');

-- No index but the primary key holds `document_id`: while a table is empty, another one costs less in the planner's eyes, and
-- a statement that was planned then would read all of that index for each row.
create index webhook_dispatch_open_due_idx on webhook_dispatch_open (webhook, next_attempt_at);
create index webhook_dispatch_open_lease_idx on webhook_dispatch_open (lease_owner, webhook)
  where lease_owner is not null;
-- Tests are posted although their webhook is inactive.
create index webhook_dispatch_open_test_idx on webhook_dispatch_open (next_attempt_at)
  where is_test and next_attempt_at is not null;
create index webhook_dispatch_open_created_idx on webhook_dispatch_open (created_at);
create index webhook_dispatch_open_replay_job_idx on webhook_dispatch_open (replay_job) where replay_job is not null;

-- Ended rows: inserted when they end, deleted by retention, taken out again by a replay. Ascending indexes grow at their
-- right end, which costs less; they are read backwards.
alter table webhook_dispatch rename to webhook_dispatch_ended;
alter table webhook_dispatch_ended
  drop constraint webhook_dispatch_webhook_fkey,
  drop constraint webhook_dispatch_status,
  drop constraint webhook_dispatch_attempt_trigger_check,
  drop column next_attempt_at,
  drop column lease_owner,
  drop column lease_until,
  alter column ended_at set not null,
  add constraint webhook_dispatch_ended_status check (status in ('success', 'exhausted', 'failed', 'cancelled'));
drop index if exists webhook_dispatch_due_idx, webhook_dispatch_test_idx, webhook_dispatch_lease_idx,
  webhook_dispatch_replay_job_idx, webhook_dispatch_created_idx, webhook_dispatch_webhook_idx,
  webhook_dispatch_account_idx, webhook_dispatch_status_idx;
alter index webhook_dispatch_pkey rename to webhook_dispatch_ended_pkey;
alter index webhook_dispatch_event_id_idx rename to webhook_dispatch_ended_event_id_idx;
create index webhook_dispatch_ended_created_idx on webhook_dispatch_ended (created_at, document_id);
create index webhook_dispatch_ended_webhook_idx on webhook_dispatch_ended (webhook, created_at, document_id);
create index webhook_dispatch_ended_account_idx on webhook_dispatch_ended (account, created_at, document_id)
  where account is not null;
-- Nearly all rows are successes, which every other index finds: this one holds the rest.
create index webhook_dispatch_ended_status_idx on webhook_dispatch_ended (status, created_at, document_id)
  where status <> 'success';
create index webhook_dispatch_open_event_id_idx on webhook_dispatch_open (event_id);

-- The ledger: every row is in one of the two tables.
create view webhook_dispatch as
  select document_id, webhook, event_id, event, account, status, attempts, null::timestamptz(3) as next_attempt_at,
    last_attempt_at, last_status_code, last_error, last_duration_ms, delivered_at, ended_at, is_test, attempt_trigger,
    replay_job, null::text as lease_owner, fence, created_at, updated_at
  from webhook_dispatch_ended
  union all
  select document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
    last_attempt_at, last_status_code, last_error, last_duration_ms, delivered_at, null::timestamptz(3), is_test,
    attempt_trigger, replay_job, lease_owner, fence, created_at, updated_at
  from webhook_dispatch_open;

-- Queue ---------------------------------------------------------------------------------------------------------------

-- One row for each webhook that has rows which wait: who is served next. `visit_at` is the due time of its earliest row,
-- or the time at which it was last served, whichever is later, so that webhooks take turns.
create table webhook_queue (
  webhook uuid primary key,
  visit_at timestamptz(3) not null,
  -- Its webhook is inactive: its rows rest.
  is_held boolean not null default false
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);
create index webhook_queue_visit_idx on webhook_queue (visit_at) where not is_held;
insert into webhook_queue
  select o.webhook, min(o.next_attempt_at), bool_or(not w.is_actived or w.deleted_at is not null)
  from webhook_dispatch_open o join webhook w on w.document_id = o.webhook
  where o.next_attempt_at is not null group by o.webhook;

create function release_webhook_queue() returns trigger language plpgsql as $$
begin
  update webhook_queue set is_held = false where webhook = new.document_id;
  return null;
end $$;
create trigger release_queue after update of is_actived on webhook
  for each row when (new.is_actived and not old.is_actived) execute function release_webhook_queue();

-- The rows that other workers post, by webhook. The lock is held until the transaction ends, and a function that is
-- volatile reads what was committed when it runs: so claims of all processes count each other.
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
