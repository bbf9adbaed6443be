-- additive
-- How many links of a purpose were sent to a person after an instant. While they are fewer than the limit, the person is locked
-- until the transaction ends, and the links are counted behind the lock: parallel requests pass the limit by none, and those
-- of a flood over it wait for nobody.
create function count_recent_links(holder uuid, asked text, since timestamptz, at_most integer) returns integer
language plpgsql volatile as $$
declare
  recent integer;
begin
  for turn in 1..2 loop
    select count(*)::int into recent from proof_token t
      where t."user" = holder and t.purpose = asked and t.created_at > since;
    exit when turn = 2 or recent >= at_most;
    perform from "user" u where u.document_id = holder for no key update;
  end loop;
  return recent;
end $$;

-- Rows of `oauth_state` and `oauth_client` that somebody unknown caused, each until the row expires, by the networks of the
-- address that caused it (hashes) and by the client that it is for (docs/contract/oauth.md#rows-of-strangers).
create table stranger_row (
  id bytea primary key,
  kind text not null,
  network bytea not null,
  wide_network bytea not null,
  client text not null,
  expires_at timestamptz(3) not null
);
create index stranger_row_network_idx on stranger_row (network, kind);
create index stranger_row_wide_network_idx on stranger_row (wide_network, kind);
create index stranger_row_client_idx on stranger_row (client, kind);
create index stranger_row_expires_idx on stranger_row (expires_at);

-- Takes a place for a row of a stranger; false when its network, the wide network around it, or the client has as many as its
-- limit. Places are counted behind the lock of the wide network, which holds the narrow one. The lock of the client is taken
-- near its limit only: strangers of one client wait for each other no earlier.
create function admit_stranger(row_id bytea, of_kind text, of_network bytea, of_wide bytea, of_client text,
  until timestamptz, at timestamptz, network_limit integer, wide_limit integer, client_limit integer) returns boolean
language plpgsql volatile as $$
declare
  taken integer;
begin
  if exists (select from stranger_row s where s.id = row_id) then
    return true;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('signalbox stranger ' || of_kind || encode(of_wide, 'hex'), 0));
  select count(*)::int into taken from (select from stranger_row s
    where s.wide_network = of_wide and s.kind = of_kind and (s.expires_at > at) is true limit wide_limit) x;
  if taken >= wide_limit then
    return false;
  end if;
  select count(*)::int into taken from (select from stranger_row s
    where s.network = of_network and s.kind = of_kind and (s.expires_at > at) is true limit network_limit) x;
  if taken >= network_limit then
    return false;
  end if;
  for turn in 1..2 loop
    select count(*)::int into taken from (select from stranger_row s
      where s.client = of_client and s.kind = of_kind and (s.expires_at > at) is true limit client_limit) x;
    if taken >= client_limit then
      return false;
    end if;
    exit when turn = 2 or taken < client_limit * 9 / 10;
    perform pg_advisory_xact_lock(hashtextextended('signalbox stranger ' || of_kind || ' client ' || of_client, 0));
  end loop;
  insert into stranger_row (id, kind, network, wide_network, client, expires_at)
    values (row_id, of_kind, of_network, of_wide, of_client, until) on conflict do nothing;
  return true;
end $$;

-- When a device last asked for the tokens of its code (RFC 8628 section 3.5).
alter table oauth_state add column polled_at timestamptz(3);

-- Clients that registered themselves, by their age: those that nobody ever used are deleted.
create index oauth_client_dynamic_idx on oauth_client (created_at) where registration = 'dynamic';

-- Equal refusals of a minute are one entry with a count (docs/contract/api.md#audit-entries). The key is a hash of what makes
-- them equal, and of the minute.
alter table audit_log add column count integer not null default 1, add column equal_key bytea;
create unique index audit_log_equal_key on audit_log (equal_key) where equal_key is not null;
