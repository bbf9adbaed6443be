-- not additive: code before it takes the session of an app for one of its person
-- What an app does in the name of a person: sessions that are opened with an app's access token.

-- The app, the scopes that the person granted, and the grant. Null for a session of a sign-in.
alter table session
  add column client_id text,
  add column scope text,
  add column grant_id text,
  add check ((client_id is null) = (scope is null)),
  add check (grant_id is null or client_id is not null);
create index session_grant_idx on session (grant_id) where grant_id is not null and revoked_at is null;

-- Which app acted.
alter table audit_log add column client_id text;

-- The grants that were revoked: an access token of one opens no session any more. A row is kept until the last access token
-- of its grant has expired.
create table oauth_ended_grant (
  grant_id text primary key,
  ended_at timestamptz(3) not null
);
create index oauth_ended_grant_ended_idx on oauth_ended_grant (ended_at);

-- Who a person is at a managed engine, as the subject of its tokens.
alter table identity add column engine_subject text;
create index identity_engine_subject_idx on identity (engine_subject) where engine_subject is not null;

-- The person of an engine's subject; null for an unknown one, and for one that stands for several people.
create function person_of_subject(asked text) returns uuid language plpgsql stable as $$
declare
  holders uuid[] := array(select distinct i."user" from identity i where i.engine_subject = asked limit 2);
begin
  return case when cardinality(holders) = 1 then holders[1] end;
end $$;

-- What else speaks against an access token that the service's own provider keeps: its client, its grant or the token
-- itself. Null when nothing does.
create function provider_token_fault(of_client text, of_grant text, of_token text, at timestamptz) returns text
language plpgsql stable as $$
begin
  if not exists (select from oauth_client c where c.document_id::text = of_client and c.deleted_at is null) then
    return 'client_unknown';
  elsif not exists (select from oauth_grant g
      where g.document_id::text = of_grant and g.client::text = of_client and g.revoked_at is null) then
    return 'grant_unknown';
  elsif not exists (select from oauth_state t
      where t.model = 'AccessToken' and t.id_hash = sha256(convert_to(of_token, 'UTF8')) and t.expires_at > at) then
    return 'token_unknown';
  end if;
  return null;
end $$;

-- Locks what the session of an access token depends on, and says what speaks against it. A grant that is being ended waits
-- for this transaction, or this one for it; a user who is being disabled likewise. So nothing ends between the check and
-- the session: a transaction that ends the grant or the user finds the session.
create function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[]) language plpgsql volatile rows 1 as $$
declare
  person uuid := coalesce(asked, person_of_subject(subject));
  active boolean;
  ended boolean;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  select u.document_id, u.is_actived and u.deleted_at is null into person, active
    from "user" u where u.document_id = person for share;
  return query select person, coalesce(active, false),
    case when ended then 'grant_ended' when is_kept then provider_token_fault(of_client, of_grant, of_token, at) end,
    accounts_of(person);
end $$;

-- Ends the sessions that were opened with tokens of a grant, and with is_final the grant: no token of it opens a session
-- any more. Returns the sessions.
create function end_grant(ended text, is_final boolean, at timestamptz) returns setof uuid language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth grant ' || ended, 0));
  if is_final then
    insert into oauth_ended_grant (grant_id, ended_at) values (ended, at) on conflict do nothing;
  end if;
  return query
    update session set revoked_at = at, updated_at = at
    where document_id in (
      select s.document_id from session s where s.grant_id = ended and s.revoked_at is null
      order by s.document_id for no key update)
    returning document_id;
end $$;

-- Decisions about authorizations of a managed engine, which takes one for each.
create table oauth_engine_decision (
  authorization_id text primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  decision text not null check (decision in ('approve', 'deny')),
  -- The app; null until the engine names it.
  client_id text,
  -- Scopes of the API that the person granted. The engine knows none of them.
  api_scope text not null,
  claimed_at timestamptz(3) not null,
  -- Where the browser continues, encrypted: it holds a code. Null while the engine is asked.
  authorize_url text,
  decided_at timestamptz(3),
  check ((authorize_url is null) = (decided_at is null))
);
create index oauth_engine_decision_user_idx on oauth_engine_decision ("user", client_id, decided_at);

-- What the person granted to an app at its last approval, of the scopes of the API.
create function api_scope_of(holder uuid, of_client text) returns text language plpgsql stable as $$
begin
  return (select d.api_scope from oauth_engine_decision d
    where d."user" = holder and d.client_id = of_client and d.decision = 'approve' and d.decided_at is not null
    order by d.decided_at desc limit 1);
end $$;
