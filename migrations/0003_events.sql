-- additive
-- The catalogue of event types, what happened, and the workers that deliver it.

-- Catalogue -----------------------------------------------------------------------------------------------------------

alter table event
  add column account_scope text not null default 'none' check (account_scope in ('account', 'none')),
  add column method text,
  add column route text,
  add column source text not null default 'route' check (source in ('route', 'synthetic', 'external')),
  add column description text,
  add column is_actived boolean not null default true,
  -- Whether callers with an account role see it in the catalogue.
  add column is_tenant_visible boolean not null default false,
  -- What it is listed under.
  add column "group" text,
  -- From when on it should not be subscribed to, and what to subscribe to instead.
  add column deprecated_at timestamptz(3),
  add column deprecation_remedy text,
  -- The body of a delivery.
  add column example jsonb,
  -- squawk-ignore constraint-missing-not-valid
  add constraint event_deprecation check ((deprecated_at is null) = (deprecation_remedy is null));

create function invalidate_read_subscriptions() returns trigger language plpgsql as $$
begin
  perform invalidate('r');
  return null;
end $$;
create trigger invalidate after insert or update of is_actived, method, internal or delete on event
  for each statement execute function invalidate_read_subscriptions();

-- The last sync of each catalogue, by the table that it writes: `event`. Null in `synced_by`: a deployment or a command.
create table catalogue_sync (
  catalogue text primary key,
  synced_at timestamptz(3) not null,
  synced_by uuid,
  written integer not null,
  version text not null
);

-- What happened -------------------------------------------------------------------------------------------------------

-- The order in which webhooks and events were recorded: an event goes to the webhooks that existed before it. It is a
-- sequence, not an instant, so that neither a wrong clock of a machine nor a step of the database's clock can change
-- it. `cache 1` keeps it one order for all connections.
create sequence recorded_ordinal as bigint cache 1;

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
  -- The webhook that the event is about (webhook.failing and similar): it never receives the event.
  excluded_webhook uuid,
  -- In no index: it is set in place where its page has room.
  routed_at timestamptz(3),
  created_at timestamptz(3) not null,
  -- The trace of the request that caused the event (W3C Trace Context): its traceparent, and its tracestate after a space.
  -- Null when no request did; such an event is the start of a trace of its own.
  trace_context text,
  ordinal bigint default nextval('recorded_ordinal'),
  -- The audit entry of a publication is its event's row, of several events the first one's: the entry's id is the event's.
  -- `publish_request` is the id of the request, and set where there is an entry. Empty details mean one event. Entries of
  -- events that retention removed before their entries are in audit_log.
  published_by uuid,
  publish_session uuid,
  publish_api_key uuid,
  publish_request uuid,
  publish_client text,
  publish_address text,
  publish_detail jsonb
) with (fillfactor = 80);
-- Indexes of lists end with the instant: PostgreSQL keeps equal instants once, and sorts the few rows of one instant by
-- their ids. With the id behind the instant it may take them for the primary key. They ascend: rows come in the order of
-- time, and fill the pages of an ascending index, which is read backwards.
create index event_occurrence_created_idx on event_occurrence (created_at);
create index event_occurrence_account_idx on event_occurrence (account, created_at) where account is not null;
-- "What happened to this resource": without it a search for a rare id would read every stored event. Ids are those of
-- the platform, which several accounts may use: the events of one account are found beside any number of others.
create index event_occurrence_resource_idx on event_occurrence (resource_id, account, created_at)
  where resource_id is not null;
create index event_occurrence_published_idx on event_occurrence (created_at) where publish_request is not null;
create index event_occurrence_publisher_idx on event_occurrence (published_by, created_at)
  where published_by is not null and publish_request is not null;

-- An idempotency key of a publisher and its event: the same key within a day publishes nothing a second time.
create table publish_key (
  caller text not null,
  key text not null,
  content_hash bytea not null,
  event_id uuid not null,
  created_at timestamptz(3) not null,
  primary key (caller, key)
);
create index publish_key_created_idx on publish_key (created_at);

-- The events that wait for their routing, oldest first. Rows come and go all the time, so they are vacuumed early.
create table event_queue (
  event_id uuid primary key
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The event log -------------------------------------------------------------------------------------------------------

-- The events that wait for the event log, in the order in which their statements ended: a transaction that waited for
-- another has the later positions. Filled by a trigger that exists while the log is on.
create table event_outbox (
  position bigint generated always as identity primary key,
  event_id uuid not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index event_outbox_event_idx on event_outbox (event_id);

-- One row, from the first start with a log on.
create table event_log (
  name text primary key check (name = 'events'),
  -- The process that appends, until its lease ends by the clock of the database.
  relay text,
  lease_until timestamptz(3),
  -- What the log confirmed last: its incarnation, the sequence in it, and when.
  incarnation text,
  last_sequence bigint not null default 0,
  appended_at timestamptz(3),
  -- The last message of this database in it, and when its event was recorded: another message there means
  -- that the log lost its end.
  own_sequence bigint,
  own_event uuid,
  own_at timestamptz(3),
  -- The last message of other databases whose events came here by moves of accounts; '-' when they are to be published
  -- again in any case.
  adopted_incarnation text,
  adopted_sequence bigint,
  adopted_event uuid,
  -- The events that are published again, before those of the outbox: after this instant and ordinal, until this instant.
  republish_after timestamptz(3),
  republish_ordinal bigint,
  republish_until timestamptz(3),
  -- The last loss that was found in the log.
  loss text check (loss in ('replaced', 'behind')),
  loss_at timestamptz(3)
);

create function record_outbox() returns trigger language plpgsql as $$
begin
  insert into event_outbox (event_id) select document_id from recorded
  where origin is null and coalesce(current_setting('signalbox.moved_account', true) <> account::text, true)
  order by ordinal;
  return null;
end $$;

-- Turns the log on: the trigger waits for the statements that insert events, and all later ones fill the outbox.
create function open_event_log() returns void language plpgsql as $$
begin
  insert into event_log (name) values ('events') on conflict (name) do nothing;
  if not exists (
    select from pg_trigger where tgrelid = 'event_occurrence'::regclass and tgname = 'record_outbox'
  ) then
    perform set_config('lock_timeout', '5s', true);
    create or replace trigger record_outbox after insert on event_occurrence
      referencing new table as recorded for each statement execute function record_outbox();
  end if;
end $$;

-- Turns the log off: what waits for it is removed.
create function close_event_log() returns void language plpgsql as $$
begin
  perform set_config('lock_timeout', '5s', true);
  drop trigger if exists record_outbox on event_occurrence;
  delete from event_outbox;
  delete from event_log;
end $$;

-- Workers -------------------------------------------------------------------------------------------------------------

-- Workers that post, each with its lease; claims of a worker that is gone, or whose lease ended, are made again.
create table delivery_worker (
  worker_id text primary key,
  lease_until timestamptz(3) not null,
  -- Whether it holds an advisory lock while its connection exists: then a killed worker is noticed at once.
  has_lock boolean not null default false
);
