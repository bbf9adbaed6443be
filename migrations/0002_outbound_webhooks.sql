-- not additive: it drops the readable secrets of webhooks and renames columns of the ledger
-- The release of outbound webhooks, 2026-09-11 (contract, Versioning 3; D79).

-- Catalogue -----------------------------------------------------------------------------------------------------------

alter table event
  add column account_scope text not null default 'none' check (account_scope in ('account', 'none')),
  add column method text,
  add column route text,
  add column source text not null default 'route' check (source in ('route', 'synthetic', 'external')),
  add column description text,
  add column is_actived boolean not null default true;

-- Webhooks ------------------------------------------------------------------------------------------------------------

-- The length of `name` is the API's rule alone: a row of before the release may be longer, and must stop no migration.
alter table webhook
  alter column account drop not null,
  add column description text,
  add column is_global boolean not null default false,
  add column consecutive_failures integer not null default 0,
  add column disabled_at timestamptz(3),
  add column disabled_reason text,
  -- AES-256-GCM under SECRET_KEY (D60, D100); the row's id is bound in.
  add column secret_encrypted text,
  add constraint webhook_description_length check (char_length(description) <= 500),
  add constraint webhook_scope check (is_global or account is not null) not valid;

-- Old secrets were kept readable and signed nothing that a subscriber checks today: they end here, and each old webhook
-- rests until its operator rotates the secret, deploys it, and activates the webhook again.
update webhook set
  is_actived = false,
  disabled_at = date_trunc('milliseconds', statement_timestamp()),
  disabled_reason = 'legacy-secret-rotation-required';
alter table webhook drop column secret;

create index webhook_account_idx on webhook (account) where deleted_at is null and is_actived;
create index webhook_created_idx on webhook (created_at desc, document_id desc);

create index webhook_event_event_idx on webhook_event (event) where deleted_at is null;

-- What happened -------------------------------------------------------------------------------------------------------

create table event_occurrence (
  document_id uuid primary key,
  event text not null,
  -- The owner, resolved when the event was recorded; null when there is none, or for a purge.
  account uuid,
  resource text not null,
  action text not null,
  resource_id text,
  url text,
  is_purge boolean not null default false,
  -- Never delivered to this webhook: it is the one the event is about (webhook.failing and its like).
  excluded_webhook uuid,
  routed_at timestamptz(3),
  created_at timestamptz(3) not null
);
-- The router's queue: what waits for its routing, oldest first.
create index event_occurrence_unrouted_idx on event_occurrence (document_id) where routed_at is null;
create index event_occurrence_created_idx on event_occurrence (created_at);

-- Ledger --------------------------------------------------------------------------------------------------------------

alter table webhook_dispatch rename column retry to attempts;
alter table webhook_dispatch
  add column event_id uuid,
  add column account uuid,
  add column next_attempt_at timestamptz(3),
  add column last_attempt_at timestamptz(3),
  add column last_status_code integer,
  add column last_duration_ms integer,
  add column delivered_at timestamptz(3),
  add column ended_at timestamptz(3),
  add column is_test boolean not null default false,
  -- Who asked for the attempt that is due: the schedule, an operator's test or replay. A replay is one POST, no more.
  add column attempt_trigger text not null default 'schedule' check (attempt_trigger in ('schedule', 'test', 'replay')),
  add column replay_job uuid,
  -- The claim: whose it is, until when, and the fence that makes a late result of an older claim void.
  add column lease_owner text,
  add column lease_until timestamptz(3),
  add column fence integer not null default 0;

-- The old sender knew other words. What it had delivered stays delivered; all else ended with it.
update webhook_dispatch set
  status = case when status in ('success', 'delivered', 'sent') then 'success' else 'failed' end,
  delivered_at = case when status in ('success', 'delivered', 'sent') then updated_at end,
  ended_at = updated_at,
  event_id = document_id;

alter table webhook_dispatch
  alter column event_id set not null,
  add constraint webhook_dispatch_status
    check (status in ('pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled')),
  -- The contract's five, whatever the code does: only a replay goes past them. Old rows keep what they counted.
  add constraint webhook_dispatch_attempts check (attempt_trigger = 'replay' or attempts <= 5) not valid;

-- The dispatcher's queue, one webhook after the other, each in the order of its due times.
create index webhook_dispatch_due_idx on webhook_dispatch (webhook, next_attempt_at, document_id)
  where status in ('pending', 'retrying');
-- Tests go out although their webhook is inactive, so they are looked for on their own.
create index webhook_dispatch_test_idx on webhook_dispatch (next_attempt_at)
  where is_test and status in ('pending', 'retrying');
-- What is claimed right now: a few hundred rows at most, whatever the ledger holds.
create index webhook_dispatch_lease_idx on webhook_dispatch (webhook, lease_until) where lease_until is not null;
create index webhook_dispatch_created_idx on webhook_dispatch (created_at desc, document_id desc);
create index webhook_dispatch_webhook_idx on webhook_dispatch (webhook, created_at desc, document_id desc);
create index webhook_dispatch_event_id_idx on webhook_dispatch (event_id);
create index webhook_dispatch_account_idx on webhook_dispatch (account, created_at desc) where account is not null;
create index webhook_dispatch_status_idx on webhook_dispatch (status, created_at desc, document_id desc);
create index webhook_dispatch_ended_idx on webhook_dispatch (ended_at) where status in ('exhausted', 'failed');

create table webhook_attempt (
  dispatch uuid not null references webhook_dispatch (document_id) on delete cascade,
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

-- How often a delivery came into each status, over all time (contract, Events 8; D77). Each process counts on a shard,
-- so that processes seldom wait for each other; the sum is the metric, and pruning the ledger does not touch it.
create table webhook_delivery_total (
  status text not null,
  shard integer not null,
  deliveries bigint not null,
  primary key (status, shard)
);
insert into webhook_delivery_total (status, shard, deliveries)
  select status, 0, count(*) from webhook_dispatch group by status;

-- The shell -----------------------------------------------------------------------------------------------------------

create table api_key (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  name text not null,
  token_hash bytea not null unique,
  hint text not null,
  permissions text[] not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index api_key_user_idx on api_key ("user");

create table idempotency_key (
  caller text not null,
  route text not null,
  key text not null,
  body_hash bytea not null,
  status_code integer,
  response jsonb,
  location text,
  created_at timestamptz(3) not null,
  primary key (caller, route, key)
);
create index idempotency_key_created_idx on idempotency_key (created_at);

-- Windows of the rate limits, shared by all processes (D8). Unlogged: a crash of the database may forget them.
create unlogged table rate_limit (
  bucket text not null,
  window_started_at timestamptz(3) not null,
  hits integer not null,
  primary key (bucket, window_started_at)
);
create index rate_limit_window_idx on rate_limit (window_started_at);

-- Failed sign-ins per account and per address (D29).
create table login_throttle (
  subject_hash bytea primary key,
  failures integer not null,
  last_failure_at timestamptz(3) not null,
  locked_until timestamptz(3)
);
