-- additive
-- Realtime messages: one for each event that has an owning account, published on the channels of that account.

-- Messages that wait or are in flight.
create table realtime_message_open (
  -- The id of the event: an event is published once. Messages of an account are published in the order of these ids.
  document_id uuid primary key,
  account uuid not null,
  event text not null,
  -- The contract of the account that the event is about: it has a channel of its own.
  contract uuid,
  attempts integer not null default 0,
  -- How many results were recorded; less than the attempts while one is in flight.
  results integer not null default 0,
  -- When the message is due; null while a worker publishes it.
  next_attempt_at timestamptz(3),
  last_attempt_at timestamptz(3),
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  lease_owner text,
  fence integer not null default 0,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  check ((lease_owner is null) = (next_attempt_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- No other index holds the primary key, as of the ledger of webhooks; of an account few messages are open.
create index realtime_message_open_account_idx on realtime_message_open (account, created_at);
create index realtime_message_open_lease_idx on realtime_message_open (lease_owner, account)
  where lease_owner is not null;

-- When the messages of an account that wait are looked at next. An account without a row has none that wait.
create table realtime_queue (
  account uuid primary key,
  visit_at timestamptz(3) not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index realtime_queue_visit_idx on realtime_queue (visit_at);

-- Messages that ended, deleted after some days.
create table realtime_message_ended (
  document_id uuid primary key,
  account uuid not null,
  event text not null,
  contract uuid,
  status text not null check (status in ('published', 'rejected', 'exhausted')),
  attempts integer not null,
  results integer not null,
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  last_attempt_at timestamptz(3),
  created_at timestamptz(3) not null,
  ended_at timestamptz(3) not null,
  fence integer not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
create index realtime_message_ended_created_idx on realtime_message_ended (created_at, document_id);
create index realtime_message_ended_account_idx on realtime_message_ended (account, created_at, document_id);

create view realtime_message as
  select document_id, account, event, contract, status, attempts, results, null::timestamptz(3) as next_attempt_at,
    last_attempt_at, last_status_code, last_error, last_duration_ms, ended_at, created_at, ended_at as updated_at
  from realtime_message_ended
  union all
  select document_id, account, event, contract, case when results = 0 then 'pending' else 'retrying' end, attempts,
    results, next_attempt_at, last_attempt_at, last_status_code, last_error, last_duration_ms, null::timestamptz(3),
    created_at, updated_at
  from realtime_message_open;

-- What each process that publishes knows of the provider, for the health of all.
create table realtime_watch (
  worker_id text primary key,
  status text not null check (status in ('operational', 'degraded', 'down')),
  last_success_at timestamptz(3),
  last_error text,
  last_error_at timestamptz(3),
  -- A 4xx: it never changes the status.
  last_warning_code integer,
  last_warning_at timestamptz(3),
  checked_at timestamptz(3) not null
);
