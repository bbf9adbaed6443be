-- additive
-- What all areas share: notes of changes, ids, stored answers, limits of requests, clocks.

-- Notes ---------------------------------------------------------------------------------------------------------------

-- Processes cache the callers of tokens, and the reads that have subscribers. Triggers note every change of the rows
-- behind these caches: for the transaction itself (signalbox.notes, read by its last statement) and for every process
-- (NOTIFY, sent at commit). Notes: 's:<session>', 'k:<API key>', 'u:<user>', 'c:<OAuth client>', 'l:<account>' (its
-- limits), 'r' (subscriptions of reads), 't' (provisioning targets), 'p' (a change of a user is queued), '*' (drop
-- all).
create function note_change(note text) returns void language plpgsql as $$
declare
  noted text := coalesce(current_setting('signalbox.notes', true), '');
begin
  if noted = '*' or note = any (string_to_array(noted, ',')) then
    return;
  end if;
  -- Beyond some 50 notes it is cheaper to drop all than to name each.
  if note = '*' or length(noted) > 2000 then
    note := '*';
    noted := '';
  end if;
  perform set_config('signalbox.notes', case when noted = '' then note else noted || ',' || note end, true);
  perform pg_notify('signalbox_change', note);
end $$;

create function note_all() returns trigger language plpgsql as $$
begin
  perform note_change('*');
  return null;
end $$;

-- Ids -----------------------------------------------------------------------------------------------------------------

-- The UUID that a text is; null for any other text.
create function uuid_of(given text) returns uuid language sql immutable as $$
  select case when given ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then given::uuid end
$$;

-- A UUID of this instant (RFC 9562, version 7). `n` orders those of one millisecond.
create function uuid_at(at timestamptz, n integer) returns uuid language sql volatile as $$
  select encode(set_byte(set_byte(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6),
    6, 112 | ((n >> 8) & 15)), 7, n & 255), 'hex')::uuid
$$;

-- Requests ------------------------------------------------------------------------------------------------------------

create table idempotency_key (
  caller text not null,
  route text not null,
  key text not null,
  body_hash bytea not null,
  status_code integer,
  -- The answer as it was sent.
  response text,
  location text,
  created_at timestamptz(3) not null,
  -- The owner of what was changed: a caller who lost that account does not get the answer again.
  account uuid,
  primary key (caller, route, key)
);
create index idempotency_key_created_idx on idempotency_key (created_at);

-- Windows of the rate limits, shared by all processes. Unlogged: a crash of the database may forget them.
create unlogged table rate_limit (
  bucket text not null,
  window_started_at timestamptz(3) not null,
  hits integer not null,
  primary key (bucket, window_started_at)
);
create index rate_limit_window_idx on rate_limit (window_started_at);

-- Clocks --------------------------------------------------------------------------------------------------------------

-- Processes whose machine is more than two seconds off the database's clock, each by its own measurement.
create table process_skew (
  process text primary key,
  -- Offset of its machine's clock from the database's, ms; positive: ahead.
  skew_ms bigint not null,
  seen_at timestamptz not null
);
create index process_skew_seen_idx on process_skew (seen_at);
