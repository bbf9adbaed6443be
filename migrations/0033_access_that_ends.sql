-- additive
-- What a person opened ends together: sessions, families of OAuth tokens, and what is still on its way.

-- What began before this instant opens nothing after it.
alter table "user" add column access_ended_at timestamptz(3);
-- Sessions of apps at a managed engine that began before this instant give no token.
alter table "user" add column apps_ended_at timestamptz(3);
create index login_code_user_idx on login_code ("user");
create index oauth_grant_user_idx on oauth_grant ("user");

-- The redirect URIs that a consent was given for.
alter table oauth_grant add column redirect_uris text[] not null default '{}';
update oauth_grant g set redirect_uris = c.redirect_uris from oauth_client c
  where c.document_id = g.client and num_nonnulls(g.revoked_at) = 0;

-- Ends every family of tokens that rests on these grants. The families are locked first, and in one order: a token that is
-- being written holds its family, so it is there for the second statement.
create function end_families(grants uuid[]) returns void language plpgsql volatile as $$
begin
  perform from oauth_state s where s.consent = any(grants) and s.model = 'Grant' order by s.id_hash for update;
  delete from oauth_state s where s.consent = any(grants);
end $$;

-- Locks the sessions of a person that an end of its access ends: all but `kept` and, with `keeps_apps`, those of apps that
-- were not opened from one that ends.
create function lock_ending_sessions(holder uuid, keeps_apps boolean, kept uuid) returns uuid[]
language plpgsql volatile as $$
begin
  return array(select s.document_id from session s
    where s."user" = holder and s.revoked_at is null and s.document_id is distinct from kept
      and (not keeps_apps or s.client_id is null or (s.parent is not null and s.parent is distinct from kept))
    order by s.document_id for no key update);
end $$;

-- Ends what a person opened, but for the session `kept` and, with `keeps_apps`, for apps and their tokens. Returns the
-- sessions that this call ends. What was opened from a session ends with it. The person is locked first, as by whatever opens a session. Consents stay.
create function end_access_of(holder uuid, at timestamptz, keeps_apps boolean, kept uuid) returns setof uuid
language plpgsql volatile as $$
declare
  ended uuid[];
begin
  perform from "user" u where u.document_id = holder for no key update;
  ended := lock_ending_sessions(holder, keeps_apps, kept);
  update session set revoked_at = at, updated_at = at where document_id = any(ended);
  update "user" set access_ended_at = at, apps_ended_at = case when keeps_apps then apps_ended_at else at end
    where document_id = holder;
  delete from proof_token where "user" = holder and purpose = 'reset';
  -- Whoever redeems one holds it and waits for the person: it is judged by access_ended_at then, as a second step is.
  delete from login_code where code_hash = any(array(
    select c.code_hash from login_code c where c."user" = holder for update skip locked));
  if not keeps_apps then
    perform end_families(array(select g.document_id from oauth_grant g where g."user" = holder));
  end if;
  return query select unnest(ended);
end $$;

create or replace function end_grant(ended text, is_final boolean, at timestamptz) returns setof uuid
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

create or replace function end_client(ended uuid, at timestamptz) returns void language plpgsql volatile as $$
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

-- The session of the browser that a token ends with; null for a token with offline_access.
create function browser_of_token(of_token text) returns uuid language sql stable as $$
  select uuid_of((select s.payload ->> 'browserSession' from oauth_state s
      where s.model = 'Session' and s.uid = t.payload ->> 'sessionUid' limit 1))
    from oauth_state t
    where t.model = 'AccessToken' and t.id_hash = sha256(convert_to(of_token, 'UTF8'))
      and t.payload ->> 'expiresWithSession' = 'true'
$$;

-- As before, but the person is locked first: an end of its access holds the person while it ends grants. At a managed engine
-- `began_at` is when the session of the token began. `browser`: the session that the opened one ends with.
create function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz,
  began_at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[], allowed text[], browser uuid)
language plpgsql volatile rows 1 as $$
declare
  person uuid := coalesce(asked, person_of_subject(subject));
  active boolean;
  ended boolean;
  apps_ended timestamptz;
  opened_in uuid;
begin
  select u.document_id, u.is_actived and u.deleted_at is null, u.apps_ended_at into person, active, apps_ended
    from "user" u where u.document_id = person for share;
  -- The client before the grant: its deletion holds the one while it waits for the other.
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth client ' || of_client, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  if not is_kept and not ended then
    ended := is_engine_grant_revoked(person, of_client);
  end if;
  if is_kept then
    opened_in := browser_of_token(of_token);
    perform from session s where s.document_id = opened_in for share;
  end if;
  return query select person, coalesce(active, false),
    case
      when ended then 'grant_ended'
      when is_kept then provider_token_fault(of_client, of_grant, of_token, at)
      -- The engine writes whole seconds.
      when date_trunc('second', apps_ended) >= date_trunc('second', began_at) then 'access_ended'
    end,
    accounts_of(person),
    case when is_kept then (select g.scopes from oauth_grant g where g.document_id = uuid_of(of_grant)) end,
    opened_in;
end $$;

-- Takes the question for consent with this id, which asks this person, and reads what the person allowed the client before:
-- behind the locks of the person, the client and the grant, so that of two decisions the second knows the first. Nothing is
-- returned when the session of the decision has ended.
create function claim_consent(asked bytea, at timestamptz, person uuid, deciding uuid) returns table (
  payload jsonb, consumed_at timestamptz, created_at timestamptz, document_id uuid, "user" uuid, client uuid,
  scopes text[], refused_scopes text[], redirect_uris text[], updated_at timestamptz
) language plpgsql volatile rows 1 as $$
declare
  of_client uuid;
  claimed jsonb;
begin
  perform from "user" u where u.document_id = person and u.is_actived and u.deleted_at is null for no key update;
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
  update oauth_state i set consumed_at = at
    where i.model = 'Interaction' and i.id_hash = asked and (i.expires_at > at) is true and i.consumed_at is null
      and i.payload -> 'session' ->> 'accountId' = person::text and i.payload -> 'prompt' ->> 'name' = 'consent'
    returning i.payload into claimed;
  if claimed is null then
    return;
  end if;
  perform from oauth_grant g
    where g."user" = person and g.client = of_client and num_nonnulls(g.revoked_at) = 0 for no key update;
  return query select claimed, at, to_timestamp((claimed ->> 'iat')::double precision)::timestamptz,
      g.document_id, g."user", g.client, g.scopes, g.refused_scopes, g.redirect_uris, g.updated_at
    from (select 1) one
    left join oauth_grant g on g."user" = person and g.client = of_client and g.revoked_at is null;
end $$;

-- What the user of a token holds by it: in a session without a second factor less than elsewhere.
create function holdings_of_token(holder uuid, session_id uuid)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
begin
  return query select * from user_holdings(holder, session_id is null or coalesce(
    (select 'mfa' = any(s.amr) from session s where s.document_id = session_id), false));
end $$;

-- The sessions and API keys with which subscriptions were authorized at a provider outside of the service. `ends_at`: when one
-- is looked at again, since its JWT or the key expires.
create table realtime_grant_token (
  token text primary key,
  user_id uuid not null,
  ends_at timestamptz(3),
  granted_at timestamptz(3) not null
) with (fillfactor = 80);
create index realtime_grant_token_ends_idx on realtime_grant_token (ends_at);
create index realtime_grant_token_granted_idx on realtime_grant_token (granted_at);

-- What people who are disabled or deleted had opened before this rule: nothing of it comes back.
select end_families(array(
  select g.document_id from oauth_grant g join "user" u on u.document_id = g."user"
  where not u.is_actived or u.deleted_at is not null));
