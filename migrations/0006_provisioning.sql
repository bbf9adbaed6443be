-- additive
-- Provisioning: changes of users are delivered to target platforms.

-- Targets -------------------------------------------------------------------------------------------------------------

create table provisioning_target (
  document_id uuid primary key,
  -- 'webhook': signed events. 'scim': the users of a SCIM 2.0 service (RFC 7644), whose base this URL is.
  protocol text not null default 'webhook' check (protocol in ('webhook', 'scim')),
  url text not null,
  name text,
  description text,
  is_actived boolean not null default true,
  -- The secret that signs, or the bearer token of a SCIM service.
  secret_encrypted text not null,
  created_by uuid,
  updated_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  -- A target whose URL changes may be another service: the ids that the former one gave the users mean nothing there, and
  -- what it has of them is not known. What was learned of a user counts for the generation of the target under which it was
  -- learned.
  generation integer not null default 0
);
create index provisioning_target_created_idx on provisioning_target (created_at);
create index provisioning_target_key_idx on provisioning_target (split_part(secret_encrypted, '.', 2));

-- Without a target processes skip all work of provisioning: the first one invalidates.
create function invalidate_provisioning_target() returns trigger language plpgsql as $$
begin
  perform invalidate('t');
  return null;
end $$;
create trigger invalidate after insert or delete or update of deleted_at on provisioning_target
  for each statement execute function invalidate_provisioning_target();

-- Number of existing targets, counted behind a lock: a volatile function reads what was committed when it runs.
create function count_targets_under_lock() returns integer language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(7320117);
  return (select count(*) from provisioning_target where deleted_at is null);
end $$;

-- Time of the last claim of each target, so that targets take turns.
create table provisioning_target_claim (
  target uuid primary key references provisioning_target on delete cascade,
  last_claimed_at timestamptz(3) not null
) with (fillfactor = 70);

-- Ledger --------------------------------------------------------------------------------------------------------------

-- One user at one target, with deliveries one after the other. Every statement that adds, claims or ends a delivery
-- changes this row, so they are serialized, whatever they read.
create table provisioning_stream (
  target uuid not null references provisioning_target on delete cascade,
  -- Without a foreign key: the row outlives its user, for as long as the ledger.
  user_id uuid not null,
  -- Of the last delivery.
  position integer not null,
  -- Deliveries that have not ended, the claimed one included.
  waiting integer not null check (waiting >= 0),
  -- When the first of these is due; null while a worker makes it, and without one.
  due_at timestamptz(3),
  -- The claim: the worker, the delivery that it makes, and the fence that makes a late result of an older claim void.
  lease_owner text,
  claimed uuid,
  claimed_at timestamptz(3),
  fence integer not null default 0,
  -- State at the target (provisioning_digest): null before the first attempt, 'unknown' after a failed one.
  delivered_digest text,
  -- The id that a SCIM service gave the user.
  remote_id text,
  generation integer not null default 0,
  primary key (target, user_id),
  check ((lease_owner is null) = (claimed is null) and (claimed is null) = (claimed_at is null)),
  check ((waiting > 0) = (due_at is not null or claimed is not null)),
  check (due_at is null or claimed is null)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
create index provisioning_stream_due_idx on provisioning_stream (target, due_at) where due_at is not null;
create index provisioning_stream_lease_idx on provisioning_stream (lease_owner) where lease_owner is not null;
-- The user behind an id of a SCIM service.
create index provisioning_stream_remote_idx on provisioning_stream (target, remote_id) where remote_id is not null;

create table provisioning_delivery (
  document_id uuid primary key,
  target uuid not null references provisioning_target on delete cascade,
  user_id uuid not null,
  position integer not null,
  event_id uuid not null,
  type text not null check (
    type in ('user.provisioned', 'user.updated', 'user.disabled', 'user.enabled', 'user.deprovisioned')),
  -- The user as it was then.
  email text not null,
  name text,
  user_status text not null check (user_status in ('active', 'disabled', 'deleted')),
  status text not null default 'pending' check (
    status in ('pending', 'retrying', 'delivered', 'failed', 'dead_letter', 'cancelled')),
  attempts integer not null default 0,
  attempt_trigger text not null default 'schedule' check (attempt_trigger in ('schedule', 'replay')),
  last_attempt_at timestamptz(3),
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  delivered_at timestamptz(3),
  ended_at timestamptz(3),
  job uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  -- Whether it was waiting on its schedule when a replay made it due: the schedule continues after that attempt.
  keeps_schedule boolean not null default false,
  unique (target, user_id, position),
  check ((ended_at is null) = (status in ('pending', 'retrying'))),
  -- The contract's eight, whatever the code does: only a replay exceeds them.
  check (attempt_trigger = 'replay' or attempts <= 8)
) with (fillfactor = 80);
-- A small index of instants and ids serves a look-up of an id as well as the primary key does, by the costs of PostgreSQL 18,
-- and the workers look deliveries up by their ids. So these indexes end with the instant.
create index provisioning_delivery_created_idx on provisioning_delivery (created_at);
create index provisioning_delivery_user_idx on provisioning_delivery (user_id, created_at);
-- The open deliveries of a user in their order, which no other index has: the index of the positions holds all ended
-- ones. Also the remaining deliveries of a deleted target.
create index provisioning_delivery_open_idx on provisioning_delivery (target, user_id, (position + 0))
  where ended_at is null;
create index provisioning_delivery_ended_idx on provisioning_delivery (ended_at) where ended_at is not null;
create index provisioning_delivery_failed_idx on provisioning_delivery (status, ended_at)
  where status in ('failed', 'dead_letter');
create index provisioning_delivery_job_idx on provisioning_delivery (job, status) where job is not null;

create table provisioning_attempt (
  delivery uuid not null references provisioning_delivery on delete cascade,
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
  primary key (delivery, attempt)
);

-- Number of ended deliveries by status, over all time: the metric.
create table provisioning_total (
  status text primary key,
  came bigint not null
);

-- Jobs ----------------------------------------------------------------------------------------------------------------

create table provisioning_job (
  document_id uuid primary key,
  target uuid not null references provisioning_target on delete cascade,
  -- 'sync': every user. 'reconcile': those whose state the target has not accepted. 'redrive': those whose latest delivery
  -- has failed.
  kind text not null check (kind in ('sync', 'reconcile', 'redrive')),
  status text not null check (status in ('running', 'paused', 'done', 'cancelled', 'failed')),
  total integer not null,
  processed integer not null default 0,
  queued integer not null default 0,
  -- The last visited user, in the order of ids.
  last_user uuid,
  failures integer not null default 0,
  last_error text,
  -- Changes of users that did not see the target yet have ended once no transaction before this one runs.
  begun_by xid8 not null default pg_current_xact_id(),
  created_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  ended_at timestamptz(3)
);
create unique index provisioning_job_open_key on provisioning_job (target)
  where status in ('running', 'paused', 'failed');
create index provisioning_job_created_idx on provisioning_job (created_at);
create index provisioning_job_running_idx on provisioning_job (document_id) where status = 'running';

-- Queue ---------------------------------------------------------------------------------------------------------------

-- Digest of a user's state at a target, to compare.
create function provisioning_digest(email text, name text, user_status text) returns text language sql immutable as $$
  select case when user_status = 'deleted' then 'deleted'
    else md5(json_build_array(email, name, user_status)::text) end
$$;

-- Queues the current state of users for targets, behind what is queued already. Streams are locked in the order of
-- targets and users, as everywhere. Returns how many deliveries were written.
create function queue_provisioning(targets uuid[], users uuid[], types text[], at timestamptz, of_job uuid)
returns integer language sql volatile as $$
  with asked as materialized (
    select u.document_id as user_id, x.type, u.email, u.name, uuid_at(at, 0) as event_id,
      case when u.deleted_at is not null then 'deleted' when u.is_actived then 'active' else 'disabled' end as user_status
    from unnest(users, types) x (id, type)
    cross join lateral (select * from "user" u where u.document_id = x.id offset 0) u
  ), streamed as (
    insert into provisioning_stream as s (target, user_id, position, waiting, due_at)
    select t.id, a.user_id, 1, 1, at from unnest(targets) t (id), asked a order by t.id, a.user_id
    on conflict (target, user_id) do update
      set position = s.position + 1, waiting = s.waiting + 1,
        due_at = case when s.waiting = 0 then excluded.due_at else s.due_at end
    returning s.target, s.user_id, s.position
  ), queued as (
    insert into provisioning_delivery (document_id, target, user_id, position, event_id, type, email, name, user_status,
      job, created_at, updated_at)
    select uuid_at(at, s.position), s.target, s.user_id, s.position, a.event_id, a.type, a.email, a.name, a.user_status, of_job, at, at
    from streamed s join asked a on a.user_id = s.user_id
    returning document_id
  )
  select count(*)::integer from queued
$$;

-- A change of a user is queued in its own transaction: whichever program makes the change, both stand or fall together,
-- and what is queued of one user is in the order of its changes, because they hold the lock on its row.
create function queue_user_change() returns trigger language plpgsql as $$
declare
  targets uuid[];
  type text;
begin
  select array_agg(document_id) into targets from provisioning_target where deleted_at is null;
  -- `signalbox.event_queue`: the switch of the event queue, set for the connections of a service that has it off.
  if targets is null or current_setting('signalbox.event_queue', true) = 'off' then
    return null;
  end if;
  if tg_op = 'INSERT' then
    type := case when new.deleted_at is null then 'user.provisioned' end;
  elsif new.deleted_at is not null then
    type := case when old.deleted_at is null then 'user.deprovisioned' end;
  elsif old.deleted_at is not null then
    type := 'user.provisioned';
  elsif old.is_actived <> new.is_actived then
    type := case when new.is_actived then 'user.enabled' else 'user.disabled' end;
  elsif (old.email, old.name) is distinct from (new.email, new.name) then
    type := 'user.updated';
  end if;
  if type is not null then
    perform queue_provisioning(targets, array[new.document_id], array[type], new.updated_at, null);
    perform invalidate('p');
  end if;
  return null;
end $$;
create trigger queue_change after insert or update of email, name, is_actived, deleted_at on "user"
  for each row execute function queue_user_change();
