-- additive
-- The OAuth provider: clients with their secrets, signing keys, grants, the state of the protocol, the exchange of an
-- app's token for a session, and the apps of a managed engine.

-- Clients -------------------------------------------------------------------------------------------------------------

create table oauth_client (
  document_id uuid primary key,
  name text not null,
  type text not null check (type in ('confidential', 'public')),
  application_type text not null check (application_type in ('web', 'native')),
  redirect_uris text[] not null,
  post_logout_redirect_uris text[] not null,
  grant_types text[] not null,
  scopes text[] not null,
  publisher text,
  first_party boolean not null,
  backchannel_logout_uri text,
  id_token_signed_response_alg text not null check (id_token_signed_response_alg in ('ES256', 'RS256')),
  dpop_bound_access_tokens boolean not null,
  -- Who registered it: an administrator, or the client itself (RFC 7591).
  registration text not null check (registration in ('administrator', 'dynamic')),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  -- The logo, fetched once when an administrator names it.
  logo_uri text,
  logo_hash text,
  -- Authentication of the client, beside its type: the method, the public keys or their URL, and whether its requests
  -- are pushed. Null: by its secret alone.
  proof json
);
create index oauth_client_created_idx on oauth_client (created_at);
create index oauth_client_name_idx on oauth_client (name);
create index oauth_client_updated_idx on oauth_client (updated_at);
create index oauth_client_first_party_idx on oauth_client (created_at) where first_party;
create index oauth_client_type_idx on oauth_client (type, created_at);
create index oauth_client_application_type_idx on oauth_client (application_type, created_at);
create index oauth_client_registration_idx on oauth_client (registration, created_at);
-- Clients that registered themselves, by their age: unused ones are deleted.
create index oauth_client_dynamic_idx on oauth_client (created_at) where registration = 'dynamic';

create table oauth_client_logo (
  client uuid primary key references oauth_client (document_id) on delete cascade,
  media_type text not null,
  body bytea not null check (length(body) <= 131072)
);

-- Several secrets of one client are valid at once while it rotates.
create table oauth_client_secret (
  document_id uuid primary key,
  client uuid not null references oauth_client (document_id),
  secret_hash bytea not null,
  expires_at timestamptz(3),
  created_at timestamptz(3) not null,
  -- When a client last authenticated by it, to the minute.
  last_used_at timestamptz(3)
);
create index oauth_client_secret_client_idx on oauth_client_secret (client);
-- For the removal of expired secrets.
create index oauth_client_secret_expires_at_idx on oauth_client_secret (expires_at) where expires_at is not null;

-- Number of valid secrets of a client. It takes the id of a locked client, so that it counts behind the lock.
create function live_secrets_of(of_client uuid, at timestamptz) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from oauth_client_secret s
    where s.client = of_client and (s.expires_at is null or s.expires_at > at));
end $$;

-- Processes hold clients in memory.
create function invalidate_oauth_client() returns trigger language plpgsql as $$
begin
  perform invalidate('c:' || case when tg_table_name = 'oauth_client' then to_jsonb(old) ->> 'document_id'
    else coalesce(to_jsonb(new), to_jsonb(old)) ->> 'client' end);
  return null;
end $$;
create trigger invalidate after update or delete on oauth_client
  for each row execute function invalidate_oauth_client();
-- A use changes nothing that is held.
create trigger invalidate after insert or update of client, secret_hash, expires_at or delete on oauth_client_secret
  for each row execute function invalidate_oauth_client();

-- A key is published from its creation to expires_at, and signs from active_at until a newer key of its algorithm does.
create table oauth_signing_key (
  kid text primary key,
  alg text not null check (alg in ('ES256', 'RS256')),
  -- The private key as a JWK, encrypted.
  private_key text not null,
  active_at timestamptz(3) not null,
  expires_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index oauth_signing_key_key_idx on oauth_signing_key (split_part(private_key, '.', 2));

-- Grants --------------------------------------------------------------------------------------------------------------

-- Grants: scopes that a user granted to a client.
create table oauth_grant (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id),
  client uuid not null references oauth_client (document_id),
  scopes text[] not null,
  -- Scopes that were requested and not granted.
  refused_scopes text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  -- The redirect URIs that the consent was given for.
  redirect_uris text[] not null default '{}'
);
create unique index oauth_grant_live_key on oauth_grant ("user", client) where revoked_at is null;
create index oauth_grant_user_idx on oauth_grant ("user");
-- The grants of a client, when it is deleted.
create index oauth_grant_client_idx on oauth_grant (client);
-- The consents of a client, counted.
create index oauth_grant_client_live_idx on oauth_grant (client) where revoked_at is null;
create index oauth_grant_created_idx on oauth_grant (created_at, document_id);
create index oauth_grant_updated_idx on oauth_grant (updated_at);

-- Last use of a grant. It is stored apart from the grant: a token is issued without a lock of the grant.
create table oauth_grant_use (
  grant_id uuid primary key references oauth_grant (document_id) on delete cascade,
  -- That of the grant.
  client uuid not null,
  used_at timestamptz(3) not null
);
-- The last use of a client.
create index oauth_grant_use_client_idx on oauth_grant_use (client, used_at);

-- Revoked grants: their access tokens no longer open a session. A row is stored until the last access token of its
-- grant has expired.
create table oauth_ended_grant (
  grant_id text primary key,
  ended_at timestamptz(3) not null
);
create index oauth_ended_grant_ended_idx on oauth_ended_grant (ended_at);

-- State of the protocol -----------------------------------------------------------------------------------------------

-- Codes, tokens, sessions, interactions. Ids are credentials, so only their hashes are stored.
create table oauth_state (
  model text not null,
  id_hash bytea not null,
  payload jsonb not null,
  -- The family of tokens of one authorization, and the granted scopes.
  grant_id text,
  consent uuid,
  uid text,
  user_code_hash bytea,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  -- Of a spent refresh token: a hash of the client that spent it, and for some seconds the encrypted answer.
  consumed_by bytea,
  answer text,
  -- Last poll of a device for the tokens of its code (RFC 8628 section 3.5).
  polled_at timestamptz(3),
  primary key (model, id_hash)
);
create index oauth_state_grant_idx on oauth_state (grant_id) where grant_id is not null;
create index oauth_state_consent_idx on oauth_state (consent) where consent is not null;
-- All conditions of a look-up in one index: with the first alone, PostgreSQL may read the index of expiries beside it,
-- which holds every unexpired token, or the index of the models.
create index oauth_state_uid_model_idx on oauth_state (uid, model, expires_at) where uid is not null;
create unique index oauth_state_user_code_key on oauth_state (user_code_hash) where user_code_hash is not null;
create index oauth_state_expires_idx on oauth_state (expires_at);
create index oauth_state_answer_idx on oauth_state (consumed_at) where answer is not null;

-- Rows of `oauth_state` and `oauth_client` that unauthenticated requests created, each until the row expires, by the
-- networks of the requesting address (hashes) and by the client (docs/contract/oauth.md#rows-of-strangers).
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

-- Reserves a row for an unauthenticated request; false when its network, the wide network around it, or the client is
-- at its limit. Rows are counted behind the lock of the wide network, which contains the narrow one. The lock of the
-- client is taken near its limit only: until then requests for one client do not wait for each other.
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

-- Managed engines -----------------------------------------------------------------------------------------------------

-- The user of an engine's subject; null for an unknown subject, and for one of several users.
create function user_of_subject(asked text) returns uuid language plpgsql stable as $$
declare
  holders uuid[] := array(select distinct i."user" from identity i where i.engine_subject = asked limit 2);
begin
  return case when cardinality(holders) = 1 then holders[1] end;
end $$;

-- Decisions about authorizations of a managed engine, which takes one for each.
create table oauth_engine_decision (
  authorization_id text primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  decision text not null check (decision in ('approve', 'deny')),
  -- The app; null until the engine names it.
  client_id text,
  -- Granted scopes of the API. The engine knows none of them.
  api_scope text not null,
  claimed_at timestamptz(3) not null,
  -- URL at which the browser continues, encrypted, because it holds a code. Null until the engine answers.
  authorize_url text,
  decided_at timestamptz(3),
  check ((authorize_url is null) = (decided_at is null))
);
create index oauth_engine_decision_user_idx on oauth_engine_decision ("user", client_id, decided_at);
-- For the sweep of decisions.
create index oauth_engine_decision_claimed_idx on oauth_engine_decision (claimed_at);

-- Grants to apps of the managed engine. One row for each user and app, as of the last decision.
create table engine_grant (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- The app's id at the engine.
  client uuid not null,
  client_name text not null,
  -- Scopes of the engine and of the API.
  scopes text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  -- Whether the engine revoked it too. That needs an access token of the user, so it can happen later.
  is_ended_there boolean not null default false,
  unique ("user", client)
);

-- Scopes of the API in the last approval for an app. Those granted before the current grant began were revoked: consent
-- at the engine alone does not restore them.
create function api_scope_of(holder uuid, of_client text) returns text language plpgsql stable as $$
begin
  return (select d.api_scope from oauth_engine_decision d
    where d."user" = holder and d.client_id = of_client and d.decision = 'approve' and d.decided_at is not null
      and d.decided_at >= coalesce((
        select g.created_at from engine_grant g where g."user" = holder and g.client = uuid_of(of_client)), '-infinity')
    order by d.decided_at desc limit 1);
end $$;

-- Whether a user revoked its grant to an app.
create function is_engine_grant_revoked(holder uuid, of_client text) returns boolean language sql stable as $$
  select exists (select from engine_grant g
    where g."user" = holder and g.client = uuid_of(of_client) and g.revoked_at is not null)
$$;

-- Revokes a grant with the sessions of its app, in every process. A concurrent exchange ends before it, or starts after
-- it. The grant is locked before the client: the order in which a grant is recorded at the engine and then ended.
create function end_engine_grant(holder uuid, ended uuid, at timestamptz) returns void
language plpgsql volatile as $$
begin
  perform from engine_grant g where g."user" = holder and g.client = ended and g.revoked_at is null for no key update;
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  update engine_grant set revoked_at = at, updated_at = at, is_ended_there = false
    where "user" = holder and client = ended and revoked_at is null;
  update session set revoked_at = at, updated_at = at
  where document_id = any(array(
    select s.document_id from session s
    where s."user" = holder and s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update));
end $$;

-- Consent -------------------------------------------------------------------------------------------------------------

-- Takes the consent interaction with this id, which belongs to this user, and reads the grant of the user to the
-- client: behind the locks of the user, the client and the grant, so that of two decisions the second sees the first.
-- Nothing is returned when the session of the decision has ended. The grant is locked before the interaction, because a
-- revocation locks the grant before its tokens.
create function claim_consent(asked bytea, at timestamptz, of_user uuid, deciding uuid) returns table (
  payload jsonb, consumed_at timestamptz, created_at timestamptz, document_id uuid, "user" uuid, client uuid,
  scopes text[], refused_scopes text[], redirect_uris text[], updated_at timestamptz
) language plpgsql volatile rows 1 as $$
declare
  of_client uuid;
  claimed jsonb;
begin
  perform from "user" u where u.document_id = of_user and u.is_actived and u.deleted_at is null for no key update;
  if not found or (deciding is not null and not exists (
      select from session s where s.document_id = deciding and s.revoked_at is null and s.expires_at > at)) then
    return;
  end if;
  select uuid_of(i.payload -> 'params' ->> 'client_id') into of_client
    from oauth_state i where i.model = 'Interaction' and i.id_hash = asked;
  perform from oauth_client c where c.document_id = of_client and c.deleted_at is null for share;
  if not found then
    return;
  end if;
  perform from oauth_grant g
    where g."user" = of_user and g.client = of_client and num_nonnulls(g.revoked_at) = 0 for no key update;
  update oauth_state i set consumed_at = at
    where i.model = 'Interaction' and i.id_hash = asked and (i.expires_at > at) is true and i.consumed_at is null
      and i.payload -> 'session' ->> 'accountId' = of_user::text and i.payload -> 'prompt' ->> 'name' = 'consent'
    returning i.payload into claimed;
  if claimed is null then
    return;
  end if;
  return query select claimed, at, to_timestamp((claimed ->> 'iat')::double precision)::timestamptz,
      g.document_id, g."user", g.client, g.scopes, g.refused_scopes, g.redirect_uris, g.updated_at
    from (select 1) one
    left join oauth_grant g on g."user" = of_user and g.client = of_client and g.revoked_at is null;
end $$;

-- Locks an active user, then a first-party client that is not deleted, as `claim_consent` does: false when one of them
-- no longer exists, and then nothing may be granted without consent.
create function lock_silent_grant(of_user uuid, of_client uuid) returns boolean language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = of_user and u.is_actived and u.deleted_at is null for no key update;
  if not found then
    return false;
  end if;
  perform from oauth_client c where c.document_id = of_client and c.deleted_at is null and c.first_party for share;
  return found;
end $$;

-- Exchange ------------------------------------------------------------------------------------------------------------

-- Further reason to refuse an access token of the service's own provider: its client, its grant or the token itself.
-- Null without one. The grant and the session of the browser are each looked up by their id alone.
create function provider_token_fault(of_client text, of_grant text, of_token text, at timestamptz) returns text
language plpgsql stable as $$
declare
  asked_client uuid := uuid_of(of_client);
  asked_grant uuid := uuid_of(of_grant);
  token jsonb;
begin
  if not exists (select from oauth_client c where c.document_id = asked_client and c.deleted_at is null) then
    return 'client_unknown';
  elsif (select g.client = asked_client and g.revoked_at is null from oauth_grant g
      where g.document_id = asked_grant) is not true then
    return 'grant_unknown';
  end if;
  select t.payload into token from oauth_state t
    where t.model = 'AccessToken' and t.id_hash = sha256(convert_to(of_token, 'UTF8'))
      and t.consent = asked_grant and t.expires_at > at;
  if token is null then
    return 'token_unknown';
  -- A token without offline_access ends with the session of the provider, which ends with the session of the browser.
  elsif token ->> 'expiresWithSession' = 'true' and not exists (select from oauth_state s
      where s.model = 'Session' and s.uid = token ->> 'sessionUid' and s.expires_at > at
        and s.payload ->> 'accountId' = token ->> 'accountId'
        and (s.payload ->> 'browserSession' is null or (
          select b.revoked_at is null and b.expires_at > at from session b
          where b.document_id = (s.payload ->> 'browserSession')::uuid))) then
    return 'session_ended';
  end if;
  return null;
end $$;

-- The session of the browser that a token ends with; null for a token with offline_access.
create function browser_of_token(of_token text) returns uuid language sql stable as $$
  select uuid_of((select s.payload ->> 'browserSession' from oauth_state s
      where s.model = 'Session' and s.uid = t.payload ->> 'sessionUid' limit 1))
    from oauth_state t
    where t.model = 'AccessToken' and t.id_hash = sha256(convert_to(of_token, 'UTF8'))
      and t.payload ->> 'expiresWithSession' = 'true'
$$;

-- Locks the rows that the session of an access token depends on, and returns the reason to refuse it. A revocation of
-- the grant waits for this transaction, or this one for it; a disabling of the user likewise. So nothing ends between
-- the check and the session: a transaction that revokes the grant or disables the user finds the session. The user is
-- locked first: an end of its access locks the user before it revokes grants.
--
-- `began_at`: when the session of the token began, at a managed engine. `allowed`: the current scopes of the grant of a
-- stored token, which may be fewer than those of the token. `browser`: the session that the new one ends with.
-- `kept_grant`: the grant here of an app of a managed engine.
create function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz,
  began_at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[], allowed text[], browser uuid, kept_grant uuid)
language plpgsql volatile rows 1 as $$
declare
  of_user uuid := coalesce(asked, user_of_subject(subject));
  active boolean;
  ended boolean;
  closed boolean;
  apps_ended timestamptz;
  address text;
  opened_in uuid;
begin
  select u.document_id, u.is_actived and u.deleted_at is null, u.apps_ended_at, u.email
    into of_user, active, apps_ended, address
    from "user" u where u.document_id = of_user for share;
  -- The client before the grant: a deletion of the client locks them in this order.
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth client ' || of_client, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  if not is_kept and not ended then
    ended := is_engine_grant_revoked(of_user, of_client);
  end if;
  -- A managed engine signs in by ways that an account may have closed here; tokens that are kept come from a session here.
  closed := not is_kept and required_connection_of(of_user, address) is not null;
  if is_kept then
    opened_in := browser_of_token(of_token);
    perform from session s where s.document_id = opened_in for share;
  end if;
  return query select of_user, coalesce(active, false),
    case
      when ended then 'grant_ended'
      when is_kept then provider_token_fault(of_client, of_grant, of_token, at)
      -- The engine writes whole seconds.
      when date_trunc('second', apps_ended) >= date_trunc('second', began_at) then 'access_ended'
      when closed then 'connection_required'
    end,
    open_accounts_of(of_user),
    case when is_kept then (select g.scopes from oauth_grant g where g.document_id = uuid_of(of_grant)) end,
    opened_in,
    case when not is_kept then (
      select g.document_id from engine_grant g
      where g."user" = of_user and g.client = uuid_of(of_client) and g.revoked_at is null)
    end;
end $$;

-- Ends ----------------------------------------------------------------------------------------------------------------

-- Access of a user ends together: sessions, families of OAuth tokens, and flows under way.

-- Revokes every family of tokens of these grants. The families are locked first, and in one order: a token that is
-- being written holds its family, so it exists for the second statement.
create function end_families(grants uuid[]) returns void language plpgsql volatile as $$
begin
  perform from oauth_state s where s.consent = any(grants) and s.model = 'Grant' order by s.id_hash for update;
  delete from oauth_state s where s.consent = any(grants);
end $$;

-- Ends the sessions that were opened with tokens of a grant, and with is_final the grant: its tokens no longer open a
-- session. Returns the sessions.
create function end_grant(ended text, is_final boolean, at timestamptz) returns setof uuid
language plpgsql volatile as $$
declare
  sessions uuid[];
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth grant ' || ended, 0));
  if is_final then
    insert into oauth_ended_grant (grant_id, ended_at) values (ended, at) on conflict do nothing;
  end if;
  sessions := array(
    select s.document_id from session s where s.grant_id = ended and s.revoked_at is null
    order by s.document_id for no key update);
  update session set revoked_at = at, updated_at = at where document_id = any(sessions);
  if is_final then
    perform end_families(array[uuid_of(ended)]);
  end if;
  return query select unnest(sessions);
end $$;

-- Ends the sessions that were opened for a client. Its grants are locked in the order of their own revocation, and
-- looked up by their index alone (`num_nonnulls`: the condition that a column is null may lead PostgreSQL to scan an
-- index of such rows whole).
create function end_client(ended uuid, at timestamptz) returns void language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  perform g.document_id from oauth_grant g
    where g.client = ended and num_nonnulls(g.revoked_at) = 0 order by g.document_id for no key update;
  update session set revoked_at = at, updated_at = at
  where document_id = any(array(
    select s.document_id from session s where s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update));
  perform end_families(array(select g.document_id from oauth_grant g where g.client = ended));
end $$;

-- Locks the sessions that an end of a user's access ends: all except `kept` and, with `keeps_apps`, those of apps that
-- were not opened from an ending one.
create function lock_ending_sessions(holder uuid, keeps_apps boolean, kept uuid) returns uuid[]
language plpgsql volatile as $$
begin
  return array(select s.document_id from session s
    where s."user" = holder and s.revoked_at is null and s.document_id is distinct from kept
      and (not keeps_apps or s.client_id is null or (s.parent is not null and s.parent is distinct from kept))
    order by s.document_id for no key update);
end $$;

-- Ends the sessions and flows of a user, except for the session `kept` and, with `keeps_apps`, for apps and their
-- tokens. Returns the sessions that this call ends. Child sessions end with their parent. The user is locked first, as
-- by every opening of a session. Consents stay.
create function end_access_of(holder uuid, at timestamptz, keeps_apps boolean, kept uuid) returns setof uuid
language plpgsql volatile as $$
declare
  ended uuid[];
begin
  perform from "user" u where u.document_id = holder for no key update;
  -- What stays is judged again: the address may change, by which a connection narrows the user.
  perform invalidate('u:' || holder);
  if kept is not null then
    perform invalidate('s:' || kept);
  end if;
  perform invalidate('k:' || k.document_id) from api_key k where k."user" = holder and num_nulls(k.revoked_at) = 1;
  ended := lock_ending_sessions(holder, keeps_apps, kept);
  update session set revoked_at = at, updated_at = at where document_id = any(ended);
  update "user" set access_ended_at = at, apps_ended_at = case when keeps_apps then apps_ended_at else at end
    where document_id = holder;
  delete from proof_token where "user" = holder and purpose = 'reset';
  update email_change set ended_at = at where "user" = holder and ended_at is null;
  delete from address_proof where "user" = holder;
  -- A redemption locks its code and waits for the user: it is checked against access_ended_at then, as a second step
  -- is.
  delete from login_code where code_hash = any(array(
    select c.code_hash from login_code c where c."user" = holder for update skip locked));
  if not keeps_apps then
    perform end_families(array(select g.document_id from oauth_grant g where g."user" = holder));
  end if;
  return query select unnest(ended);
end $$;
