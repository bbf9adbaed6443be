-- additive
-- What all areas share: invalidation of caches, ids, stored answers, limits of requests, clocks.

-- Invalidation --------------------------------------------------------------------------------------------------------

-- Processes cache the callers of tokens, and the reads that have subscribers. Triggers invalidate the entries behind
-- every changed row: for the transaction itself (signalbox.invalidations, read by its last statement) and for every
-- process (NOTIFY, sent at commit). Keys: 's:<session>', 'k:<API key>', 'v:<portal session>', 'u:<user>',
-- 'c:<OAuth client>', 'l:<account>' (its limits), 'r' (subscriptions of reads), 't' (provisioning targets), 'p' (a
-- change of a user is queued), 'a:<account>' (its cell), '*' (drop all).
create function invalidate(key text) returns void language plpgsql as $$
declare
  sent text := coalesce(current_setting('signalbox.invalidations', true), '');
begin
  if sent = '*' or key = any (string_to_array(sent, ',')) then
    return;
  end if;
  -- Beyond some 50 keys it is cheaper to drop all than to name each.
  if key = '*' or length(sent) > 2000 then
    key := '*';
    sent := '';
  end if;
  perform set_config('signalbox.invalidations', case when sent = '' then key else sent || ',' || key end, true);
  perform pg_notify('signalbox_change', key);
end $$;

create function invalidate_all() returns trigger language plpgsql as $$
begin
  perform invalidate('*');
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
