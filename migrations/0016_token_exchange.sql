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
