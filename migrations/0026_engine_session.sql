-- additive
-- Access tokens of people at the managed engine, each kept for a decision about an app.

create table engine_session (
  -- The session here that the person opened with it. It has no foreign key: both rows are written by one statement.
  session uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- Encrypted.
  token text not null,
  expires_at timestamptz(3) not null
);
create index engine_session_expires_idx on engine_session (expires_at);

-- For the sweep of decisions.
create index oauth_engine_decision_claimed_idx on oauth_engine_decision (claimed_at);

-- What people allow apps of the managed engine to do. One row for each person and app, as its last decision left it.
create table engine_grant (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- The app's id at the engine.
  client uuid not null,
  client_name text not null,
  -- Those of the engine and those of the API.
  scopes text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  -- Whether the engine ended it too. It takes that with the token of the person only, so later.
  is_ended_there boolean not null default false,
  unique ("user", client)
);

-- Whether a person took back what it allowed an app.
create function is_engine_grant_revoked(holder uuid, of_client text) returns boolean language sql stable as $$
  select exists (select from engine_grant g
    where g."user" = holder and g.client = uuid_of(of_client) and g.revoked_at is not null)
$$;

-- Ends a grant with the sessions of its app, in every process. An exchange under way is over before, or comes after it.
create function end_engine_grant(holder uuid, ended uuid, at timestamptz) returns void language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  update engine_grant set revoked_at = at, updated_at = at, is_ended_there = false
    where "user" = holder and client = ended and revoked_at is null;
  update session set revoked_at = at, updated_at = at
  where document_id in (
    select s.document_id from session s
    where s."user" = holder and s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update);
end $$;

create or replace function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[], allowed text[])
language plpgsql volatile rows 1 as $$
declare
  person uuid := coalesce(asked, person_of_subject(subject));
  active boolean;
  ended boolean;
begin
  -- The client before the grant: its deletion holds the one while it waits for the other.
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth client ' || of_client, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  select u.document_id, u.is_actived and u.deleted_at is null into person, active
    from "user" u where u.document_id = person for share;
  if not is_kept and not ended then
    ended := is_engine_grant_revoked(person, of_client);
  end if;
  return query select person, coalesce(active, false),
    case when ended then 'grant_ended' when is_kept then provider_token_fault(of_client, of_grant, of_token, at) end,
    accounts_of(person),
    case when is_kept then (select g.scopes from oauth_grant g where g.document_id = uuid_of(of_grant)) end;
end $$;
