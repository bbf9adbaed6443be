-- additive
-- Realtime messages, one for each event that has an owning account, published on the channels of that account; the embedded
-- server; what happens in the channels.

-- Ledger --------------------------------------------------------------------------------------------------------------

-- Messages that wait or are in flight.
create table realtime_message_open (
  -- The id of the event: an event is published once. Messages of an account are published in the order of these ids.
  document_id uuid primary key,
  account uuid not null,
  event text not null,
  -- The contract of the account that the event is about: it has a channel of its own.
  contract uuid,
  attempts integer not null default 0,
  -- Number of recorded results; less than the attempts while one is in flight.
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

-- No other index contains the primary key, as in the ledger of webhooks; an account has few open messages.
create index realtime_message_open_account_idx on realtime_message_open (account, created_at);
create index realtime_message_open_lease_idx on realtime_message_open (lease_owner, account)
  where lease_owner is not null;
-- The unclaimed messages of an account, in the order of their events: a claim reads only those that it may take,
-- however many wait after an outage of the provider. The text, because no index but the primary key may contain the id.
create index realtime_message_open_order_idx on realtime_message_open (account, ((document_id::text) collate "C"))
  where lease_owner is null;

-- Next visit to the waiting messages of an account. An account without a row has no waiting message.
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
-- For pages that resume: the messages of a contract, and those of an account that were published late.
create index realtime_message_ended_contract_idx on realtime_message_ended ("contract", created_at)
  where contract is not null;
-- The late ones by their end, for the sums of minutes; the others are found by their creation. A second more than
-- the next index has, so that a page that resumes never reads the late ones of all accounts.
create index realtime_message_ended_late_end_idx on realtime_message_ended (ended_at)
  where ended_at - created_at > interval '11 s';
create index realtime_message_ended_late_idx on realtime_message_ended (account, ended_at)
  where ended_at - created_at > interval '10 s';

create view realtime_message as
  select document_id, account, event, contract, status, attempts, results, null::timestamptz(3) as next_attempt_at,
    last_attempt_at, last_status_code, last_error, last_duration_ms, ended_at, created_at, ended_at as updated_at
  from realtime_message_ended
  union all
  select document_id, account, event, contract, case when results = 0 then 'pending' else 'retrying' end, attempts,
    results, next_attempt_at, last_attempt_at, last_status_code, last_error, last_duration_ms, null::timestamptz(3),
    created_at, updated_at
  from realtime_message_open;

-- State of the provider as each publishing process sees it, for the health of all.
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

-- Embedded server -----------------------------------------------------------------------------------------------------

-- Several processes serve the same applications; they pass each other events and counts of subscribers by notifications,
-- which are limited to 8,000 bytes, and by these tables; or, where there is one, by a bus beside the database. Nothing here outlives the processes, so neither table is logged: a
-- crash of the server empties both, and the processes write them again.

-- The serving processes. A process holds an advisory lock of its id while its listening connection exists.
create unlogged table realtime_process (
  id uuid primary key,
  seen_at timestamptz not null,
  -- Whether it receives what is sent by the bus, and the number of the last message that it sent so.
  is_on_bus boolean not null default false,
  carried bigint not null default 0,
  -- Open connections of the process, as of seen_at.
  connections integer not null
);

-- Messages between processes of the last minute, in the order of their numbers. Those that the bus may carry are numbered
-- apart (is_carried), and are here when it did not. Small messages are in the notification
-- too; the table has the large ones, and those that a process missed while its listening connection was lost.
create unlogged table realtime_relay (
  process uuid not null,
  is_carried boolean not null,
  number bigint not null,
  payload text not null,
  created_at timestamptz not null,
  primary key (process, is_carried, number)
);
create index realtime_relay_created_at on realtime_relay (created_at);

-- Channels ------------------------------------------------------------------------------------------------------------

-- Activity in the channels of realtime clients, as reported by the provider's webhooks and the embedded server.
create table realtime_channel_event (
  document_id uuid primary key,
  -- Identity of a report: the digest of a webhook's body, or the process and a number; and the place within it.
  origin text not null,
  position integer not null,
  name text not null check (name in ('channel_occupied', 'channel_vacated', 'member_added', 'member_removed',
    'client_event', 'cache_miss', 'subscription_count')),
  channel text not null,
  user_id text,
  -- Of a client event: its name and the bytes of its data.
  event text,
  bytes integer,
  subscription_count integer,
  -- Time of the activity, by the clock of its reporter.
  happened_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  unique (origin, position)
);
create index realtime_channel_event_created_idx on realtime_channel_event (created_at, document_id);
create index realtime_channel_event_channel_idx on realtime_channel_event (channel, created_at);
-- Since when a member is in its channel.
create index realtime_channel_event_member_idx on realtime_channel_event (channel, user_id, happened_at)
  where user_id is not null and name = 'member_added';

-- State of each channel by its reports. An older report that arrives late changes nothing.
create table realtime_channel_state (
  channel text primary key,
  -- Null: vacated.
  occupied_since timestamptz(3),
  occupancy_at timestamptz(3),
  subscription_count integer,
  counted_at timestamptz(3),
  changed_at timestamptz(3) not null
);
create index realtime_channel_state_changed_idx on realtime_channel_state (changed_at);

-- Subscriptions that were authorized at an external provider: it does not know their users, and the process that
-- authorized them may be gone when the user loses the access.
create table realtime_grant (
  user_id uuid not null,
  channel text not null,
  account uuid not null,
  granted_at timestamptz(3) not null,
  primary key (user_id, channel)
) with (fillfactor = 80);
create index realtime_grant_granted_idx on realtime_grant (granted_at);

-- The sessions and API keys with which subscriptions were authorized at an external provider. `ends_at`: time of the
-- next check, since the JWT or the key expires.
create table realtime_grant_token (
  token text primary key,
  user_id uuid not null,
  ends_at timestamptz(3),
  granted_at timestamptz(3) not null
) with (fillfactor = 80);
create index realtime_grant_token_ends_idx on realtime_grant_token (ends_at);
create index realtime_grant_token_granted_idx on realtime_grant_token (granted_at);
