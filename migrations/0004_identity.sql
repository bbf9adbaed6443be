-- not additive: a session must say when its user signed in, and a column of identities has another name
-- Users and accounts: addresses, roles, sessions, API keys, second factors, social login, mails, limits.
--
-- The findings of squawk that are ignored here concern tables which no earlier release still uses.

-- Users ---------------------------------------------------------------------------------------------------------------

alter table "user"
  -- Sign-ins, links and codes from before this instant are invalid.
  add column access_ended_at timestamptz(3),
  -- Sessions of apps at a managed engine that began before this instant give no token.
  add column apps_ended_at timestamptz(3),
  -- Of existing users with one address: whether another user holds it.
  add column is_email_shadowed boolean not null default false,
  -- When the user last opened a session by a sign-in; null before the first sign-in.
  add column last_sign_in_at timestamptz(3);

-- E-mail addresses are compared by one rule, which does not depend on the locale of the database: the letters A to Z in any
-- case are equal, and every other character is itself (docs/contract/identity.md#e-mail-addresses). `lower` of a locale also
-- makes an i of U+0130 and a k of U+212A.

-- In PL/pgSQL, which the planner does not inline: a plan names the function, and so does the index.
create function email_key(address text) returns text language plpgsql immutable strict parallel safe as $$
begin
  return lower(address collate "C");
end $$;

-- A locale may have kept addresses apart that are equal by the rule above (in Turkish ones, those with I and i). Of
-- existing users with one address, the first to verify it, else the oldest, keeps it. The others keep their sessions
-- and everything else, but cannot be found by their address until they get another one.
update "user" u set is_email_shadowed = true
from (
  select document_id, row_number() over (
    partition by email_key(email) order by email_verified_at nulls last, created_at, document_id) as position
  from "user" where deleted_at is null
) ranked
where u.document_id = ranked.document_id and ranked.position > 1;

create function clear_email_shadow() returns trigger language plpgsql as $$
begin
  new.is_email_shadowed := false;
  return new;
end $$;
create trigger clear_email_shadow before update of email on "user" for each row
  when (old.is_email_shadowed and email_key(old.email) <> email_key(new.email)) execute function clear_email_shadow();

-- Until somebody analyses a table, PostgreSQL expects that `deleted_at is null` or `revoked_at is null` matches almost
-- no row, and looks a row up by its key through a whole index of such rows. So indexes with such a condition also have
-- the condition that one of their columns is not null, here and below. A comparison with that column implies it, and no
-- other condition does: PostgreSQL reads the index for a value of that column only.
drop index user_email_key;
create unique index user_email_key on "user" (email_key(email))
  where deleted_at is null and not is_email_shadowed and email_key(email) is not null;

-- Lists for callers with access to all rows are read in the order of these indexes and of similar ones below: a sort
-- without an index reads and sorts the whole table for each page. They end with the value, and rows of one value are
-- sorted by their ids: with the id behind it PostgreSQL may take them for the primary key. They include deleted rows:
-- without statistics PostgreSQL prefers an index of the undeleted rows to the index of a key. Columns that each
-- delivery, refresh or change of a contract writes have no such index, because each write would cost more.
create index user_created_idx on "user" (created_at);
create index user_email_idx on "user" (email);
create index user_updated_idx on "user" (updated_at);
create index user_inactive_idx on "user" (created_at) where not is_actived;
create index user_sign_in_idx on "user" (last_sign_in_at);

create function invalidate_user() returns trigger language plpgsql as $$
begin
  perform invalidate('u:' || old.document_id);
  return null;
end $$;
create trigger invalidate after update of is_actived, deleted_at or delete on "user"
  for each row execute function invalidate_user();

-- Whether a user exists, not deleted.
create function is_living_user(asked uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from "user" u where u.document_id = asked and u.deleted_at is null);
end $$;

-- Accounts ------------------------------------------------------------------------------------------------------------

create index account_created_idx on account (created_at);
create index account_name_idx on account (name);
create index account_updated_idx on account (updated_at);

create trigger invalidate after update of deleted_at or delete on account
  for each statement execute function invalidate_all();

-- Whether an account exists, not deleted.
create function is_living_account(asked uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from account a where a.document_id = asked and a.deleted_at is null);
end $$;

create function invalidate_user_of_row() returns trigger language plpgsql as $$
begin
  perform invalidate('u:' || case when tg_op = 'DELETE' then old."user" else new."user" end);
  if tg_op = 'UPDATE' and old."user" <> new."user" then
    perform invalidate('u:' || old."user");
  end if;
  return null;
end $$;
create trigger invalidate after insert or update or delete on account_member
  for each row execute function invalidate_user_of_row();

-- The memberships of a user in their order: as this index also sorts, PostgreSQL prefers it to the index of the
-- accounts.
drop index account_member_user_idx;
create index account_member_user_idx on account_member ("user", created_at);
create index account_member_account_idx on account_member (account, created_at);
create index account_member_updated_idx on account_member (account, updated_at);

-- Limits of one account that differ from the configuration, which applies where a column is null.
create table account_limit (
  account uuid primary key references account (document_id) on delete cascade,
  webhooks integer check (webhooks >= 0),
  subscriptions integer check (subscriptions >= 0),
  published_per_minute integer check (published_per_minute >= 0),
  replays_per_minute integer check (replays_per_minute >= 0),
  ledger_retention_days integer check (ledger_retention_days between 1 and 3650),
  updated_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

-- The sweeps read the accounts with a retention of their own, which are few among many with limits.
create index account_limit_retention_idx on account_limit (account) where ledger_retention_days is not null;

-- Processes hold the limits of an account in memory.
create function invalidate_account_limit() returns trigger language plpgsql as $$
begin
  perform invalidate('l:' || case when tg_op = 'DELETE' then old.account else new.account end);
  return null;
end $$;
create trigger invalidate after insert or update or delete on account_limit
  for each row execute function invalidate_account_limit();

create table account_invitation (
  document_id uuid primary key,
  account uuid not null references account (document_id),
  email text not null,
  roles uuid[] not null,
  token_hash bytea not null unique,
  invited_by uuid not null references "user" (document_id),
  expires_at timestamptz(3) not null,
  accepted_at timestamptz(3),
  accepted_by uuid references "user" (document_id),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  -- Permissions of the inviter's token in the account: the limit of what an acceptance assigns.
  token_patterns text[]
);
create unique index account_invitation_open_key on account_invitation (account, email_key(email))
  where accepted_at is null and revoked_at is null and email_key(email) is not null;
create index account_invitation_account_idx on account_invitation (account, created_at desc, document_id desc);
create index account_invitation_email_idx on account_invitation (email_key(email));

-- Roles ---------------------------------------------------------------------------------------------------------------

-- Roles that need a second factor apply only in a session with one, and dangerous operations need a recent one.
alter table role add column requires_second_factor boolean not null default false;
create trigger invalidate after update of is_account_scoped, requires_second_factor or delete on role
  for each statement execute function invalidate_all();
create trigger invalidate after insert or update or delete on role_permission
  for each statement execute function invalidate_all();
create trigger invalidate after insert or update or delete on user_role
  for each row execute function invalidate_user_of_row();

-- Account-scoped roles that hold in the account of one membership only.
create table account_member_role (
  member uuid not null references account_member (document_id) on delete cascade,
  role uuid not null references role (document_id) on delete cascade,
  created_at timestamptz(3) not null,
  primary key (member, role)
);
create index account_member_role_role_idx on account_member_role (role, created_at);

-- Who has a role, in the order in which it was given.
drop index user_role_role_idx;
create index user_role_role_idx on user_role (role, created_at);

-- A membership that is deleted takes its roles along, and its own trigger invalidates.
create function invalidate_member_role() returns trigger language plpgsql as $$
declare
  owner uuid;
begin
  select "user" into owner from account_member
  where document_id = case when tg_op = 'DELETE' then old.member else new.member end;
  if owner is not null then
    perform invalidate('u:' || owner);
  end if;
  return null;
end $$;
create trigger invalidate after insert or update or delete on account_member_role
  for each row execute function invalidate_member_role();

-- Sessions ------------------------------------------------------------------------------------------------------------

alter table session
  -- The methods of the sign-in (RFC 8176).
  add column amr text[] not null default '{}',
  add column acr text,
  -- Time of the authentication; a session opened from another one has that of its parent.
  add column auth_time timestamptz(3),
  -- To some minutes.
  add column last_used_at timestamptz(3),
  -- The app, the granted scopes, and the grant. Null for a session of a sign-in.
  add column client_id text,
  add column scope text,
  add column grant_id text,
  -- squawk-ignore constraint-missing-not-valid
  add check ((client_id is null) = (scope is null)),
  -- squawk-ignore constraint-missing-not-valid
  add check (grant_id is null or client_id is not null);

-- Sessions whose account is deleted lose it, as sessions do when an account is deleted from now on.
update session set auth_time = created_at, last_used_at = updated_at,
  account = case when account in (select document_id from account where deleted_at is not null) then null else account end;
-- squawk-ignore adding-not-nullable-field
alter table session alter column auth_time set not null, alter column last_used_at set not null;

update "user" u set last_sign_in_at = (
  select max(s.auth_time) from session s where s."user" = u.document_id and s.parent is null);

-- A session without a parent and without an app belongs to a sign-in, which holds the lock on its user. The trigger
-- runs after the statement, which may change the same row.
create function record_last_sign_in() returns trigger language plpgsql as $$
begin
  update "user" set last_sign_in_at = greatest(last_sign_in_at, new.auth_time) where document_id = new."user";
  return null;
end $$;
create trigger record_last_sign_in after insert on session for each row
  when (new.parent is null and new.client_id is null) execute function record_last_sign_in();

drop index session_user_idx;
create index session_user_idx on session ("user") where revoked_at is null and "user" is not null;
-- Deleting an account, and leaving it, removes it from the sessions that have it as their account.
create index session_account_idx on session (account) where account is not null;
create index session_client_idx on session (client_id) where client_id is not null and revoked_at is null;
create index session_grant_idx on session (grant_id) where grant_id is not null and revoked_at is null;
create index session_created_idx on session (created_at);

create function invalidate_session() returns trigger language plpgsql as $$
begin
  perform invalidate('s:' || old.document_id);
  return null;
end $$;
create trigger invalidate after update of "user", account, expires_at, revoked_at, amr, auth_time or delete on session
  for each row execute function invalidate_session();

-- Of a spent token: a hash of the client that spent it, and what its successor is derived from without being stored.
alter table session_refresh
  add column spent_by bytea,
  add column successor_salt bytea,
  add column successor_hash bytea;

-- The nonces of the handshake tokens that were exchanged. A row is kept until its token has expired.
create table sso_nonce (
  nonce_hash bytea primary key,
  expires_at timestamptz(3) not null
);
create index sso_nonce_expires_idx on sso_nonce (expires_at);

-- API keys ------------------------------------------------------------------------------------------------------------

create table api_key (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  name text not null,
  token_hash bytea not null unique,
  hint text not null,
  permissions text[] not null,
  -- Four digits of a year: a later one breaks every list that shows it.
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  -- A key with an account holds its permissions in that account only.
  account uuid references account (document_id),
  -- The key that made it, also when that one is revoked or gone.
  created_with uuid,
  constraint api_key_expires_range
    check (expires_at between '1970-01-01T00:00:00Z' and '9999-12-31T23:59:59.999Z')
);
create index api_key_user_idx on api_key ("user");
create index api_key_account_idx on api_key (account) where account is not null and revoked_at is null;
create index api_key_created_idx on api_key (created_at);
create index api_key_created_with_idx on api_key (created_with) where created_with is not null and revoked_at is null;
create index api_key_name_idx on api_key (name);
create index api_key_updated_idx on api_key (updated_at);

create function invalidate_api_key() returns trigger language plpgsql as $$
begin
  perform invalidate('k:' || old.document_id);
  return null;
end $$;
create trigger invalidate after update of "user", permissions, expires_at, revoked_at or delete on api_key
  for each row execute function invalidate_api_key();

-- Portal sessions -----------------------------------------------------------------------------------------------------

-- Portal sessions, which an API key opens for somebody who need not be a user: one account, by one of its roles. Links
-- and tokens are stored as hashes. The key and the account are checked at each use, so a session ends with them.
create table portal_session (
  document_id uuid primary key,
  account uuid not null references account (document_id) on delete cascade,
  api_key uuid not null references api_key (document_id) on delete cascade,
  role text not null check (role in ('account-admin', 'account-developer', 'account-viewer')),
  external_user text,
  return_url text,
  lifetime_seconds integer not null check (lifetime_seconds > 0),
  link_hash bytea not null unique,
  -- Null until the link is opened.
  token_hash bytea unique,
  opened_at timestamptz(3),
  -- The end of the link until it is opened, then that of the session.
  expires_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index portal_session_account_idx on portal_session (account, created_at);
create index portal_session_living_idx on portal_session (account, expires_at);
create index portal_session_api_key_idx on portal_session (api_key);
create index portal_session_expires_idx on portal_session (expires_at);

create function invalidate_portal_session() returns trigger language plpgsql as $$
begin
  perform invalidate('v:' || old.document_id);
  return null;
end $$;
create trigger invalidate after update of account, api_key, role, expires_at, revoked_at or delete on portal_session
  for each row execute function invalidate_portal_session();

-- The portal sessions of an account, and its links that were not opened, that have not ended.
create function living_portal_sessions(asked uuid, at timestamptz) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from portal_session p
    where p.account = asked and p.expires_at > at and p.revoked_at is null);
end $$;

-- Second factors ------------------------------------------------------------------------------------------------------

-- Key ids of encrypted secrets (`v1.<key id>.<iv>.<ciphertext>`) have indexes, here and below, so that health and
-- metrics find a key that SECRET_KEY does not list without reading the tables. Without a condition where the column is
-- declared not null: PostgreSQL leaves `is not null` out of a statement then, and does not see that the statement
-- implies the condition of the index.

-- RFC 6238. last_step: the time step of the last accepted code, so that each code is accepted once.
create table totp_factor (
  document_id uuid primary key,
  "user" uuid not null unique references "user" (document_id) on delete cascade,
  secret_encrypted text not null,
  confirmed_at timestamptz(3),
  last_step bigint,
  last_used_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index totp_factor_key_idx on totp_factor (split_part(secret_encrypted, '.', 2));
create trigger invalidate after insert or update of "user", confirmed_at or delete on totp_factor
  for each row execute function invalidate_user_of_row();

create table recovery_code (
  "user" uuid not null references "user" (document_id) on delete cascade,
  code_hash bytea not null,
  used_at timestamptz(3),
  created_at timestamptz(3) not null,
  primary key ("user", code_hash)
);

create table passkey (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- In base64url, as browsers write it.
  credential_id text not null unique,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  -- Whether the passkey may be copied to other devices, and whether it is.
  is_backup_eligible boolean not null,
  is_backed_up boolean not null,
  last_used_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index passkey_user_idx on passkey ("user", created_at);
create trigger invalidate after insert or update of "user" or delete on passkey
  for each row execute function invalidate_user_of_row();

-- Open challenges: the second step of a sign-in, or the challenge of a passkey. Hashed.
create table factor_challenge (
  challenge_hash bytea primary key,
  purpose text not null check (purpose in ('sign-in', 'passkey-registration', 'passkey-sign-in', 'passkey-factor')),
  -- Null for a sign-in with a passkey, which names the user only in its answer.
  "user" uuid references "user" (document_id) on delete cascade,
  session uuid references session (document_id) on delete cascade,
  address_hash bytea,
  -- A hash of the verified password's hash: a changed password ends the sign-in.
  proof_hash bytea,
  attempts integer not null default 0,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index factor_challenge_expires_idx on factor_challenge (expires_at);
create index factor_challenge_user_idx on factor_challenge ("user");
create index factor_challenge_session_idx on factor_challenge (session);

-- Whether a user has a second factor. Recovery codes alone are none.
create function has_second_factor(of_user uuid) returns boolean language sql stable as $$
  select exists (select from totp_factor f where f."user" = of_user and f.confirmed_at is not null)
    or exists (select from passkey p where p."user" = of_user)
$$;

-- Sign-in throttle ----------------------------------------------------------------------------------------------------

-- Failed sign-ins. Rows of three kinds: a network address (empty email_hash), an e-mail address over all network addresses
-- (empty address_hash), and the pair of both.
create table login_throttle (
  email_hash bytea not null,
  address_hash bytea not null,
  failures integer not null,
  last_failure_at timestamptz(3) not null,
  wait_until timestamptz(3),
  -- Of a pair: when the delay of its e-mail address ends for it, whatever others do meanwhile.
  turn_at timestamptz(3),
  primary key (email_hash, address_hash)
);
create index login_throttle_last_failure_idx on login_throttle (last_failure_at);

-- Connections -----------------------------------------------------------------------------------------------------------

-- The own identity provider of an account. The columns of a kind are null for the others.
create table connection (
  document_id uuid primary key,
  account uuid not null references account (document_id) on delete cascade,
  kind text not null check (kind in ('oidc', 'saml')),
  name text not null,
  is_enabled boolean not null default true,
  -- Whether the members with an address of its domains sign in by it alone.
  is_enforced boolean not null default false,
  -- Whether unknown people of its domains become users and members.
  is_jit boolean not null default false,
  -- Role of a member none of whose groups has one.
  default_role uuid references role (document_id) on delete set null,
  -- Longest session that it opens.
  session_hours integer not null default 24 check (session_hours between 1 and 2160),
  -- The issuer of an OpenID provider, or the entity id of a SAML one.
  issuer text,
  -- OpenID Connect.
  client_id text,
  scopes text[],
  -- Of SAML the name of an attribute; null there means the usual ones.
  groups_claim text,
  is_email_trusted boolean,
  -- SAML. Certificates are PEM; names of attributes that are null mean the usual ones.
  sso_url text,
  certificates text[],
  -- The end of the last of them.
  certificates_end_at timestamptz(3),
  email_attribute text,
  name_attribute text,
  -- Of OpenID Connect the secret of the client.
  secret_encrypted text,
  created_by uuid,
  updated_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  check (kind <> 'oidc' or num_nulls(issuer, client_id, scopes, is_email_trusted, secret_encrypted) = 0),
  check (kind <> 'saml' or num_nulls(issuer, sso_url, certificates, certificates_end_at) = 0)
);
create index connection_account_idx on connection (account, created_at);
create index connection_default_role_idx on connection (default_role) where default_role is not null;
create index connection_certificates_end_idx on connection (certificates_end_at)
  where is_enabled and certificates_end_at is not null;
create index connection_key_idx on connection (split_part(secret_encrypted, '.', 2)) where secret_encrypted is not null;

-- The roles that groups of the provider give, in the account of the connection.
create table connection_group_role (
  connection uuid not null references connection (document_id) on delete cascade,
  group_name text not null,
  role uuid not null references role (document_id) on delete cascade,
  primary key (connection, group_name, role)
);
create index connection_group_role_role_idx on connection_group_role (role);

-- Domains of e-mail addresses, in ASCII and lower case. Several accounts may claim one, and one may prove it.
create table connection_domain (
  document_id uuid primary key,
  connection uuid not null references connection (document_id) on delete cascade,
  account uuid not null references account (document_id) on delete cascade,
  domain text not null,
  -- What a TXT record must hold. It is public there, so it is no secret.
  token text not null,
  verified_at timestamptz(3),
  verified_by text check (verified_by in ('dns', 'operator')),
  checked_at timestamptz(3),
  -- The end of an unproven claim; null once it is proven.
  expires_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (connection, domain),
  check ((verified_at is null) = (verified_by is null)),
  check ((verified_at is null) = (expires_at is not null))
);
create unique index connection_domain_verified_key on connection_domain (domain)
  where verified_at is not null and domain is not null;
create index connection_domain_account_idx on connection_domain (account);
create index connection_domain_expires_idx on connection_domain (expires_at) where expires_at is not null;

-- People whom a connection has proven, by their id at the provider.
create table connection_identity (
  document_id uuid primary key,
  connection uuid not null references connection (document_id) on delete cascade,
  subject text not null,
  "user" uuid not null references "user" (document_id) on delete cascade,
  last_login_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (connection, subject),
  unique (connection, "user")
);
create index connection_identity_user_idx on connection_identity ("user");

-- Sessions of users of several accounts in which a connection has proven the user. A connection that is enforced keeps its
-- account from the other sessions of such a user. They change behind the locks of the connection and of the user.
create table connection_proof (
  session uuid not null references session (document_id) on delete cascade,
  connection uuid not null references connection (document_id) on delete cascade,
  proven_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  primary key (session, connection)
);
create index connection_proof_connection_idx on connection_proof (connection);

-- The sessions that were opened from the proven one follow it.
create function invalidate_proven_sessions() returns trigger language plpgsql as $$
begin
  perform invalidate('s:' || x) from unnest(session_tree(
    case when tg_op = 'DELETE' then old.session else new.session end)) x;
  return null;
end $$;
create trigger invalidate after insert or update or delete on connection_proof
  for each row execute function invalidate_proven_sessions();

-- How the attempts to sign in by a connection ended, by day: '' for a sign-in, else the reason of the refusal. No foreign
-- key: an attempt may end after its connection.
create table connection_activity (
  connection uuid not null,
  day timestamptz(3) not null,
  reason text not null,
  count integer not null,
  primary key (connection, day, reason)
);
-- For the sweep alone.
create index connection_activity_day_idx on connection_activity (day) where day is not null;

-- Social login --------------------------------------------------------------------------------------------------------

-- squawk-ignore renaming-column
alter table identity rename column email_verified to is_email_verified;
-- Claims of a provider about a user.
alter table identity
  add column name text,
  add column avatar_url text,
  add column last_login_at timestamptz(3),
  -- Id of the user at a managed engine: the subject of its tokens.
  add column engine_subject text;
create index identity_engine_subject_idx on identity (engine_subject) where engine_subject is not null;

-- A sign-in, the connection of a provider, or the proof of a session, between its start and its callback. Only the hash of the state is stored,
-- and the verifier and the nonce are encrypted: a copy of this table completes no flow.
create table login_flow (
  state_hash bytea primary key,
  provider text not null,
  -- The connection that the sign-in is by, and ends with.
  connection uuid references connection (document_id) on delete cascade,
  purpose text not null check (purpose in ('sign-in', 'link', 'proof')),
  -- Who connects the provider.
  "user" uuid references "user" (document_id) on delete cascade,
  -- The session that the connection proves. It has no foreign key: the flow ends sooner than the sweep deletes sessions.
  session uuid,
  redirect_url text not null,
  is_deep_link boolean not null,
  -- Whether only the browser that began it finishes it, by its cookie.
  is_bound boolean not null,
  secret text not null,
  -- A deep link that asked for a code (RFC 7636, S256).
  code_challenge text,
  -- Apple posts the name beside its answer, once in a lifetime.
  posted_name text,
  -- The verified response of a SAML provider, encrypted, until the browser that began comes with its cookie.
  posted_answer text,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  created_at timestamptz(3) not null,
  check ((purpose = 'link') = ("user" is not null)),
  check ((purpose = 'proof') = (session is not null)),
  -- A proof is of the browser that began it.
  check (purpose <> 'proof' or (connection is not null and is_bound))
);
create index login_flow_expires_idx on login_flow (expires_at);
create index login_flow_connection_idx on login_flow (connection, expires_at) where connection is not null;

-- A code that an app exchanges, once and soon: for the tokens of a deep link, or for the connection of a provider.
create table login_code (
  code_hash bytea primary key,
  purpose text not null check (purpose in ('sign-in', 'link')),
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- The connection that the sign-in was by.
  connection uuid references connection (document_id) on delete cascade,
  code_challenge text,
  is_new_user boolean not null default false,
  -- What will be connected.
  identity jsonb,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index login_code_expires_idx on login_code (expires_at);
create index login_code_user_idx on login_code ("user");
create index login_code_connection_idx on login_code (connection) where connection is not null;

-- Access tokens of users at the managed engine, each stored for a decision about an app.
create table engine_session (
  -- The session here that was opened with it. It has no foreign key: both rows are written by one statement.
  session uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- Encrypted.
  token text not null,
  expires_at timestamptz(3) not null
);
create index engine_session_expires_idx on engine_session (expires_at);
-- Assertions of SAML that were used, by the hash of their connection and id, until they end.
create table saml_assertion (
  id_hash bytea primary key,
  connection uuid not null references connection (document_id) on delete cascade,
  expires_at timestamptz(3) not null
);
create index saml_assertion_connection_idx on saml_assertion (connection);
create index saml_assertion_expires_idx on saml_assertion (expires_at);

-- Mails ---------------------------------------------------------------------------------------------------------------

-- Queued mails. Their content is encrypted, and erased once they are sent or given up.
create table mail_outbox (
  document_id uuid primary key,
  kind text not null,
  recipient text not null,
  content text,
  status text not null default 'waiting' check (status in ('waiting', 'sent', 'failed')),
  attempts integer not null default 0,
  due_at timestamptz(3) not null,
  -- No attempt after this instant: the link in the mail is of no use any more.
  expires_at timestamptz(3) not null,
  last_error text,
  created_at timestamptz(3) not null,
  -- By the clock of the database, which the limits of an address count by.
  queued_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3)
);
create index mail_outbox_recipient_idx on mail_outbox (email_key(recipient), kind, queued_at);
create index mail_outbox_due_idx on mail_outbox (due_at) where status = 'waiting';
create index mail_outbox_ended_idx on mail_outbox (ended_at) where ended_at is not null;

-- Without a mail server, development stores its latest mails here, to be read at /auth/mail.
create table kept_mail (
  document_id uuid primary key,
  recipient text not null,
  subject text not null,
  text text not null,
  created_at timestamptz(3) not null
);

-- Tokens of links in mails: hashed, deleted by their use.
create table proof_token (
  token_hash bytea primary key,
  purpose text not null check (purpose in ('reset', 'verification')),
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- The address that the link was sent to: it proves no other one.
  email text not null,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index proof_token_user_idx on proof_token ("user", purpose, created_at);
create index proof_token_expires_idx on proof_token (expires_at);

-- Pictures that users uploaded, as the service re-encoded them. The key is the end of their address, and new with each.
create table user_picture (
  "user" uuid primary key references "user" (document_id) on delete cascade,
  key text not null unique,
  content bytea not null check (octet_length(content) <= 524288),
  created_at timestamptz(3) not null
);

create function remove_user_picture() returns trigger language plpgsql as $$
begin
  delete from user_picture where "user" = new.document_id;
  return null;
end $$;
create trigger remove_picture after update of deleted_at on "user" for each row
  when (old.deleted_at is null and new.deleted_at is not null) execute function remove_user_picture();

-- Changes of their own address that users asked for. The links to the new and to the present address are hashed; each
-- hash is erased by its use, and the address changes with the second use.
create table email_change (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  -- The session that asked, which stays open when the address changes. It has no foreign key: sessions are swept earlier.
  session uuid not null,
  new_email text not null,
  -- The address at the request. With another one the request is void.
  old_email text not null,
  new_token_hash bytea unique,
  old_token_hash bytea unique,
  expires_at timestamptz(3) not null,
  -- When it was made, replaced, withdrawn or ended with all access of the user.
  ended_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index email_change_user_idx on email_change ("user", created_at);
create index email_change_created_idx on email_change (created_at);

-- Proofs of an address that somebody without a session asked for: a sign-up, or a sign-in by mail. Every request has a
-- row, whether a user has the address or not, so that known and unknown addresses count alike. Hashed; deleted by their
-- use.
create table address_proof (
  token_hash bytea primary key,
  purpose text not null check (purpose in ('sign-up', 'sign-in')),
  email text not null,
  -- Of a sign-in: the user who has the address; the id that the asking client holds (hash), the hash of this id with the
  -- code of the mail, and the number of codes that were tried.
  "user" uuid references "user" (document_id) on delete cascade,
  login_hash bytea unique,
  code_hash bytea,
  attempts integer not null default 0,
  -- The networks of the requesting address (hashes).
  network bytea not null,
  wide_network bytea not null,
  -- The browser that asked (hash), and where it continues afterwards.
  browser bytea,
  redirect_url text,
  next text,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index address_proof_user_idx on address_proof ("user");
create index address_proof_email_idx on address_proof (email_key(email), purpose);
create index address_proof_network_idx on address_proof (network, purpose);
create index address_proof_wide_network_idx on address_proof (wide_network, purpose);
create index address_proof_purpose_idx on address_proof (purpose, expires_at);
create index address_proof_expires_idx on address_proof (expires_at);

-- Reads behind locks --------------------------------------------------------------------------------------------------

-- A change reads the rows it depends on behind the locks that protect them. A statement reads as of its own start, and
-- so not what was committed while it waited for a lock; a volatile function reads as of its call. These functions take
-- the id of a locked row, so that they run behind the lock: one statement locks, waits and reads. They are in PL/pgSQL,
-- whose plans a connection caches, and which is never inlined into the calling statement.
--
-- Their statements allow no other plan than look-ups: with a handful of rows a join that scans a whole index costs as
-- little as a look-up for each row, and a plan stays in use while the tables grow. So a row is looked up by its key in
-- a subquery (`offset 0`, or a scalar one), and what is locked is listed first, and then looked up by its ids.

-- The roles of a user, by name.
create function roles_of(holder uuid) returns table (roles uuid[], role_names text[])
language plpgsql volatile rows 1 as $$
begin
  return query select
    array(select r.document_id from user_role ur join role r on r.document_id = ur.role
      where ur."user" = holder order by r.name),
    array(select r.name from user_role ur join role r on r.document_id = ur.role
      where ur."user" = holder order by r.name);
end $$;

-- Permissions of a user: the patterns of its global roles, of its account-scoped roles and of the roles of each
-- membership, and its accounts that are not deleted. Without a second factor in the session, the roles that need one
-- are left out. So is the account `lacked`.
create function user_holdings(holder uuid, has_proof boolean default true, lacked uuid default null)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
declare
  members uuid[];
  joined uuid[];
begin
  select coalesce(array_agg(m.document_id order by m.account), '{}'), coalesce(array_agg(m.account order by m.account), '{}')
    into members, joined
    from (select x.document_id, x.account from account_member x where x."user" = holder order by x.created_at) m
    where m.account is distinct from lacked
      and (select a.deleted_at is null from account a where a.document_id = m.account);
  return query select
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and not r.is_account_scoped and (has_proof or not r.requires_second_factor)
      order by p.pattern),
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and r.is_account_scoped and (has_proof or not r.requires_second_factor)
      order by p.pattern),
    array(select json_build_object('account', m.account, 'patterns', array_agg(distinct p.pattern order by p.pattern))
      from unnest(members, joined) m (document_id, account)
      cross join lateral (select x.role from account_member_role x where x.member = m.document_id offset 0) mr
      join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
      where r.is_account_scoped and (has_proof or not r.requires_second_factor)
      group by m.account order by m.account),
    joined;
end $$;

-- Whether a user belongs to an account that is not deleted besides one.
create function has_other_account(holder uuid, besides uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from account_member m where m."user" = holder and m.account <> besides
    and (select a.deleted_at is null from account a where a.document_id = m.account));
end $$;

-- The account of a user of several accounts that is reached in proven sessions alone, and the connection that proves them.
-- No row for other users.
create function narrowing_of(holder uuid) returns table (connection uuid, account uuid)
language plpgsql volatile rows 1 as $$
declare
  closing uuid := closing_connection_of(holder, (select u.email from "user" u where u.document_id = holder));
  owner uuid;
begin
  if closing is null then
    return;
  end if;
  owner := (select c.account from connection c where c.document_id = closing);
  if has_other_account(holder, owner) and not is_operator(holder) then
    return query select closing, owner;
  end if;
end $$;

-- The same for a session. `proven_until` is null where the session lacks the account. A session that was opened from
-- another one has the proofs of that one.
create function session_narrowing(holder uuid, asked uuid, at timestamptz)
returns table (connection uuid, account uuid, proven_until timestamptz) language plpgsql volatile rows 1 as $$
begin
  return query select n.connection, n.account, (select p.expires_at from connection_proof p
      where p.session = root_session(asked) and p.connection = n.connection and p.expires_at > at)
    from narrowing_of(holder) n;
end $$;

-- The patterns of the roles of a membership. Without a second factor in the session, the roles that need one are left out.
create function membership_patterns_at(holder uuid, joined uuid, has_proof boolean) returns text[]
language plpgsql volatile as $$
begin
  return array(select distinct p.pattern
    from account_member m
    cross join lateral (select x.role from account_member_role x where x.member = m.document_id offset 0) mr
    join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
    where m.account = joined and m."user" = holder and r.is_account_scoped
      and (has_proof or not r.requires_second_factor)
    order by p.pattern);
end $$;

-- Permissions that a token gives its user: fewer in a session without a second factor, or which lacks an account. A key
-- reaches an account that narrows sessions when it is bound to it.
create function holdings_of_token(holder uuid, session_id uuid, key_id uuid, at timestamptz)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
begin
  if session_id is null then
    return query select * from user_holdings(holder, true, (select n.account from narrowing_of(holder) n
      where n.account is distinct from (select k.account from api_key k where k.document_id = key_id)));
  else
    return query select * from user_holdings(holder,
      coalesce((select 'mfa' = any(s.amr) from session s where s.document_id = session_id), false),
      (select n.account from session_narrowing(holder, session_id, at) n where num_nulls(n.proven_until) = 1));
  end if;
end $$;

-- The accounts of a user that are not deleted, the longest membership first: id and name. Without the account `lacked`.
create function accounts_of(holder uuid, lacked uuid default null) returns json[] language plpgsql volatile as $$
begin
  return array(select json_build_object('id', a.document_id, 'name', a.name)
    from account_member m
    cross join lateral (select * from account x where x.document_id = m.account offset 0) a
    where m."user" = holder and m.account is distinct from lacked and a.deleted_at is null
    order by m.created_at, m.document_id);
end $$;

-- The same without the account that is reached in proven sessions alone.
create function open_accounts_of(holder uuid) returns json[] language plpgsql volatile as $$
begin
  return accounts_of(holder, (select n.account from narrowing_of(holder) n));
end $$;

-- The account with the longest membership, of those that are reached without a proof of the session.
create function first_account_of(holder uuid) returns uuid language sql stable as $$
  select m.account from account_member m
    where m."user" = holder and (select a.deleted_at is null from account a where a.document_id = m.account)
      and m.account is distinct from (select n.account from narrowing_of(holder) n)
    order by m.created_at, m.document_id limit 1
$$;

-- The membership of a user in an account, with its roles.
create function membership_of(holder uuid, joined uuid)
returns table (member uuid, member_roles uuid[], member_created_at timestamptz, member_updated_at timestamptz)
language plpgsql volatile rows 1 as $$
begin
  return query select m.document_id,
    array(select mr.role from account_member_role mr where mr.member = m.document_id order by mr.role),
    m.created_at, m.updated_at
  from account_member m where m.account = joined and m."user" = holder;
end $$;

-- The patterns of a role, sorted.
create function patterns_of(given uuid) returns text[] language plpgsql volatile as $$
begin
  return array(select p.pattern from role_permission p where p.role = given order by p.pattern);
end $$;

-- Locks the role of this name and counts its active holders besides one: of two who remove each other, one succeeds.
create function other_holders(holder uuid, role_name text) returns integer language plpgsql volatile as $$
begin
  perform from role r where r.name = role_name for update;
  return (select count(*) from role r
    join user_role ur on ur.role = r.document_id join "user" u on u.document_id = ur."user"
    where r.name = role_name and u.document_id <> holder and u.is_actived and u.deleted_at is null);
end $$;

-- Locks the unrevoked sessions and API keys of a user, each in the order of their ids.
create function lock_tokens(holder uuid) returns table (sessions uuid[], api_keys uuid[])
language plpgsql volatile rows 1 as $$
begin
  return query select
    array(select s.document_id from session s where s."user" = holder and s.revoked_at is null
      order by s.document_id for no key update),
    array(select k.document_id from api_key k where k."user" = holder and k.revoked_at is null
      order by k.document_id for no key update);
end $$;

-- Facts that decide whether a token may create an API key: whether its session or key is valid and its user active,
-- when the key of the token expires, and how many keys of the user are valid.
create function key_maker(holder uuid, session_id uuid, key_id uuid, at timestamptz)
returns table (is_live boolean, expires_at timestamptz, live_keys integer) language plpgsql volatile rows 1 as $$
begin
  return query select
    exists (select from "user" u where u.document_id = holder and u.is_actived and u.deleted_at is null)
      and (coalesce(bool_or(k.document_id = key_id), false) or exists (
        select from session s where s.document_id = session_id and s.revoked_at is null and s.expires_at > at)),
    max(k.expires_at) filter (where k.document_id = key_id),
    count(k.document_id)::int
  from api_key k where k."user" = holder and k.revoked_at is null and (k.expires_at is null or k.expires_at > at);
end $$;

-- The session that this one was opened from, at the top of its tree; the session itself when it has no parent.
create function root_session(asked uuid) returns uuid language plpgsql stable as $$
begin
  return (
    with recursive line as (
      select s.document_id, s.parent from session s where s.document_id = asked
      union
      select s.document_id, s.parent from session s join line l on l.parent = s.document_id
    )
    select l.document_id from line l where l.parent is null);
end $$;

-- A session and every session opened from it.
create function session_tree(root uuid) returns uuid[] language plpgsql volatile as $$
begin
  return array(
    with recursive tree as (
      select root as document_id
      union
      select child.document_id from tree t cross join lateral (
        select s.document_id from session s where s.parent = t.document_id offset 0) child
    )
    select t.document_id from tree t);
end $$;

-- Every token of a user is judged again, in every process.
create function invalidate_tokens_of(holder uuid) returns void language plpgsql volatile as $$
begin
  perform invalidate('u:' || holder);
  perform invalidate('s:' || s.document_id) from session s where s."user" = holder and s.revoked_at is null;
  perform invalidate('k:' || k.document_id) from api_key k where k."user" = holder and num_nulls(k.revoked_at) = 1;
end $$;

-- Locks a session and every session opened from it, and returns those that are unrevoked. Opening a session from
-- another one locks that one: each turn finds the sessions opened while the turn before waited for its locks, and the
-- last one finds none, since every session of the tree is locked then. A turn locks in the order of the ids, which
-- prevents deadlocks. Child sessions are looked up by the index of parents, one parent at a time, and the tree by its
-- ids: a join may scan both indexes whole.
create function lock_session_tree(root uuid) returns uuid[] language plpgsql volatile as $$
declare
  locked uuid[] := '{}';
  found_now uuid[];
begin
  loop
    found_now := array(
      with recursive tree as (
        select s.document_id from session s where s.document_id = root
        union
        select child.document_id from tree t cross join lateral (
          select s.document_id from session s where s.parent = t.document_id offset 0) child
      )
      select s.document_id from session s
      where s.document_id = any(array(select t.document_id from tree t)) and s.revoked_at is null
        and s.document_id <> all(locked)
      order by s.document_id for no key update);
    exit when cardinality(found_now) = 0;
    locked := locked || found_now;
  end loop;
  return locked;
end $$;

-- Revokes a session and every session opened from it, and returns those that were unrevoked.
create function revoke_session(root uuid, at timestamptz) returns setof uuid language plpgsql volatile as $$
declare
  locked uuid[] := lock_session_tree(root);
begin
  return query
    update session set revoked_at = at, updated_at = at where document_id = any(locked) returning document_id;
end $$;

-- Revokes the sessions of a user and returns those that were unrevoked. Opening a session locks the user: a session
-- that is being opened exists behind this lock.
create function revoke_sessions_of(holder uuid, at timestamptz) returns setof uuid
language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = holder for no key update;
  return query
    update session set revoked_at = at, updated_at = at
    where document_id = any(array(
      select s.document_id from session s where s."user" = holder and s.revoked_at is null
      order by s.document_id for no key update))
    returning document_id;
end $$;

-- The address of a sent link, if its token is unused, of this user and unexpired. Uses of the tokens of a user lock the
-- user: behind that lock, one of two concurrent uses finds the token.
create function proven_address(holder uuid, hash bytea, asked text, at timestamptz) returns setof text
language plpgsql volatile rows 1 as $$
begin
  return query select t.email from proof_token t
    where t.token_hash = hash and t.purpose = asked and t."user" = holder and t.expires_at > at;
end $$;

-- Number of links of a purpose sent to a user after an instant. Below the limit, the user is locked until the
-- transaction ends, and the links are counted behind the lock: parallel requests never exceed the limit, and those of a
-- flood over it do not wait.
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

-- Number of mails of a kind that an address may still get, behind the lock of both.
create function mail_room(address text, of_kind text, hourly integer, daily integer) returns integer
language plpgsql volatile as $$
declare
  at timestamptz;
  of_hour integer;
  of_day integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('signalbox mail ' || of_kind || ' ' || email_key(address), 0));
  at := clock_timestamp();
  select count(*) filter (where x.queued_at > at - interval '1 hour')::int, count(*)::int into of_hour, of_day
  from (
    select m.queued_at from mail_outbox m
    where email_key(m.recipient) = email_key(address) and m.kind = of_kind and m.queued_at > at - interval '1 day'
    order by m.queued_at desc limit daily) x;
  return greatest(0, least(hourly - of_hour, daily - of_day));
end $$;

-- Number of changes of the own address that a locked user asked for after an instant.
create function count_email_changes(holder uuid, since timestamptz) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from email_change c where c."user" = holder and c.created_at > since);
end $$;

-- The change of the address of a locked user that a link belongs to, if it is neither ended nor expired and the link is
-- unused: of two uses at once, one finds it.
create function email_change_of(holder uuid, hash bytea, at timestamptz) returns setof email_change
language plpgsql volatile rows 1 as $$
begin
  return query select c.* from email_change c
    where c."user" = holder and c.ended_at is null and c.expires_at > at
      and (c.new_token_hash = hash or c.old_token_hash = hash);
end $$;

-- Keeps a proof of an address for a request without a session. Returns the limit that refuses it: of all open proofs of
-- the purpose, of the network, of the wide network around it, or of the address; null when it is kept. A known browser
-- has one limit of its own instead, so that strangers cannot use it up. Rows are counted behind the locks of the
-- wide network and of the address. Those of everybody are counted without a lock, so that a flood over the limit waits
-- for nobody: parallel requests may exceed that one by their number.
create function admit_address_proof(hash bytea, of_purpose text, address text, holder uuid, of_login bytea,
  of_code bytea, of_network bytea, of_wide bytea, of_browser bytea, is_known_browser boolean, return_url text,
  next_path text, until timestamptz, at timestamptz, address_limit integer, network_limit integer, wide_limit integer,
  total_limit integer) returns text
language plpgsql volatile as $$
declare
  taken integer;
begin
  if not is_known_browser then
    select count(*)::int into taken from (select from address_proof p
      where p.purpose = of_purpose and p.expires_at > at limit total_limit) x;
    if taken >= total_limit then
      return 'total';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('signalbox address proof ' || encode(of_wide, 'hex'), 0));
    select count(*)::int into taken from (select from address_proof p
      where p.wide_network = of_wide and p.purpose = of_purpose and (p.expires_at > at) is true limit wide_limit) x;
    if taken >= wide_limit then
      return 'network';
    end if;
    select count(*)::int into taken from (select from address_proof p
      where p.network = of_network and p.purpose = of_purpose and (p.expires_at > at) is true limit network_limit) x;
    if taken >= network_limit then
      return 'network';
    end if;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('signalbox address proof ' || email_key(address), 0));
  select count(*)::int into taken from (select from address_proof p
    where email_key(p.email) = email_key(address) and p.purpose = of_purpose and (p.expires_at > at) is true
      and (not is_known_browser or p.browser = of_browser)
    limit address_limit) x;
  if taken >= address_limit then
    return 'address';
  end if;
  insert into address_proof (token_hash, purpose, email, "user", login_hash, code_hash, network, wide_network, browser,
      redirect_url, next, expires_at, created_at)
    values (hash, of_purpose, address, holder, of_login, of_code, of_network, of_wide, of_browser, return_url,
      next_path, until, at);
  return null;
end $$;

-- The sign-in by mail of a link, or of the id of its client, locked behind its user until the transaction ends. An attempt
-- by the id counts before its code is compared. An address without a user costs the same.
create function try_mail_login(of_token bytea, of_login bytea, at timestamptz) returns setof address_proof
language plpgsql volatile rows 1 as $$
declare
  hash bytea := coalesce(of_token, (select p.token_hash from address_proof p where p.login_hash = of_login));
begin
  perform from "user" u where u.document_id = (select p."user" from address_proof p where p.token_hash = hash)
    for no key update;
  return query update address_proof p set attempts = attempts + case when of_login is null then 0 else 1 end
    where p.token_hash = hash and p.purpose = 'sign-in' and (p.expires_at > at) is true returning p.*;
end $$;

-- The identities of a user.
create function identities_of(holder uuid) returns setof identity language plpgsql volatile as $$
begin
  return query select i.* from identity i where i."user" = holder;
end $$;

-- Serializes sign-ins of the same identity, and those with the same address, until the transaction ends, and returns
-- the identity behind these locks: so two first sign-ins at once create one user.
create function lock_identity(at_provider text, of_subject text, address text) returns setof identity
language plpgsql volatile rows 1 as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('identity ' || at_provider || ' ' || of_subject, 0)),
    pg_advisory_xact_lock(hashtextextended('address ' || email_key(address), 0));
  return query select i.* from identity i where i.provider = at_provider and i.subject = of_subject;
end $$;

-- Locks the identities and the addresses of many users at once, as `lock_identity` does those of one. A sign-in takes one
-- identity and then one address, so all identities come first, and each kind in one order.
create function lock_identities(providers text[], subjects text[], addresses text[]) returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('identity ' || x.provider || ' ' || x.subject, 0)) from (
    select distinct i.provider, i.subject from unnest(providers, subjects) i (provider, subject) order by 1, 2) x;
  perform pg_advisory_xact_lock(hashtextextended('address ' || x.address, 0)) from (
    select distinct email_key(a.address) as address from unnest(addresses) a (address) order by 1) x;
end $$;

-- The ways in of a user besides its identities, behind the locks of a disconnection: those of the identity first, as
-- `lock_identity` takes them at a sign-in, which writes the identity again and would bring it back; then the user, as
-- every removal of a way in does.
create function lock_ways_in(asked uuid, of_user uuid) returns table (holder uuid, has_password boolean, passkeys integer)
language plpgsql volatile rows 1 as $$
begin
  perform lock_identity(i.provider, i.subject, coalesce(i.email, ''))
    from identity i where i.document_id = asked and i."user" = of_user;
  perform from "user" u where u.document_id = of_user for no key update;
  return query select u.document_id, u.password_hash is not null,
      (select count(*)::int from passkey p where p."user" = of_user)
    from "user" u where u.document_id = of_user;
end $$;

-- Locks a user, and says behind the lock whether it has a second factor.
create function lock_has_factor(holder uuid) returns boolean language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = holder for no key update;
  return exists (select from passkey p where p."user" = holder)
    or exists (select from totp_factor t where t."user" = holder and t.confirmed_at is not null);
end $$;

-- The domain of an address, as connections keep it.
create function domain_of(address text) returns text language plpgsql immutable strict parallel safe as $$
begin
  return email_key(split_part(address, '@', 2));
end $$;

-- Number of the connections of a locked account.
create function count_connections(asked uuid) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from connection c where c.account = asked);
end $$;

-- Number of the domains of a locked connection.
create function count_connection_domains(asked uuid) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from connection_domain d where d.connection = asked);
end $$;

-- The roles of groups at a connection.
create function group_roles_of(asked uuid) returns json language plpgsql volatile as $$
begin
  return coalesce((select json_agg(json_build_object('group', g.group_name, 'role', g.role) order by g.group_name, g.role)
    from connection_group_role g where g.connection = asked), '[]');
end $$;

-- Whether the domain of an address is proven for a connection.
create function has_proven_domain(asked uuid, address text) returns boolean language plpgsql volatile as $$
begin
  return exists (select from connection_domain d
    where d.domain = domain_of(address) and d.verified_at is not null and d.connection = asked);
end $$;

-- Whether a connection of another account than this one knows a user.
create function is_connected_elsewhere(holder uuid, besides uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from connection_identity i where i."user" = holder
    and (select c.account <> besides from connection c where c.document_id = i.connection));
end $$;

-- Whether a user may not change its own address: a connection knows it, or keeps its account from unproven sessions.
create function has_fixed_address(holder uuid) returns boolean language plpgsql volatile as $$
begin
  return connected_account_of(holder) is not null or exists (select from narrowing_of(holder));
end $$;

-- The account of a connection that has proven a user; null for other users.
create function connected_account_of(holder uuid) returns uuid language plpgsql volatile as $$
begin
  return (select (select c.account from connection c where c.document_id = i.connection)
    from connection_identity i where i."user" = holder limit 1);
end $$;

-- Whether a user has a role that holds in more than its accounts: it operates the platform, and no account closes its ways
-- in.
create function is_operator(holder uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from user_role ur where ur."user" = holder
    and (select not r.is_account_scoped from role r where r.document_id = ur.role));
end $$;

-- The same behind locks of the roles of a user, so that the end of one, and a change of its scope, come before or after.
-- Built-in roles do not change.
create function lock_is_operator(holder uuid) returns boolean language plpgsql volatile as $$
begin
  perform from role r
    where r.document_id = any(array(select ur.role from user_role ur where ur."user" = holder)) and not r.is_system
    order by r.document_id for share;
  return is_operator(holder);
end $$;

-- Whether an account signs members with the address of a user in by one of its connections alone.
create function closes_ways_in(joined uuid, holder uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from connection_domain d
      where d.domain = (select domain_of(u.email) from "user" u where u.document_id = holder) and d.verified_at is not null
        and d.account = joined
        and (select c.is_enabled and c.is_enforced from connection c where c.document_id = d.connection))
    and not lock_is_operator(holder);
end $$;

-- The connection by which an account of a user signs members with this address in alone; null where none does.
create function closing_connection_of(holder uuid, address text) returns uuid language plpgsql volatile as $$
begin
  return (select d.connection from connection_domain d
    where d.domain = domain_of(address) and d.verified_at is not null
      and (select c.is_enabled and c.is_enforced from connection c where c.document_id = d.connection)
      and (select a.deleted_at is null from account a where a.document_id = d.account)
      and exists (select from account_member m where m.account = d.account and m."user" = holder));
end $$;

-- Whether an account of a user signs members with this address in by a connection alone, behind locks of its roles.
create function lock_is_closed(holder uuid, address text) returns boolean language plpgsql volatile as $$
begin
  return closing_connection_of(holder, address) is not null and not lock_is_operator(holder);
end $$;

-- The holders of a role beyond accounts to whom an account closes the ways in but for such a role.
create function closed_holders_of(given uuid) returns uuid[] language plpgsql volatile as $$
begin
  return array(select ur."user" from user_role ur
    where ur.role = given and (select not r.is_account_scoped from role r where r.document_id = given)
      and (select u.deleted_at is null and closing_connection_of(u.document_id, u.email) is not null
        from "user" u where u.document_id = ur."user")
    order by ur."user");
end $$;

-- Locks them, in the order of their ids, and returns them.
create function lock_closed_holders(given uuid) returns uuid[] language plpgsql volatile as $$
declare
  holders uuid[] := closed_holders_of(given);
begin
  perform from "user" u where u.document_id = any(holders) order by u.document_id for no key update;
  return holders;
end $$;

-- Ends what those of the locked users opened who keep no other role beyond their accounts than a locked one.
create function end_closed_holders(holders uuid[], given uuid, at timestamptz) returns void
language plpgsql volatile as $$
declare
  holder uuid;
begin
  foreach holder in array holders loop
    if not exists (select from user_role ur where ur."user" = holder and ur.role <> given
        and (select not r.is_account_scoped from role r where r.document_id = ur.role)) then
      perform end_access_of(holder, at, false, null);
    end if;
  end loop;
end $$;

-- Whether a connection knows some user with this role, so that the role must not hold beyond accounts.
create function has_connected_holder(given uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from user_role ur where ur.role = given
    and exists (select from connection_identity i where i."user" = ur."user")
    and (select u.deleted_at is null from "user" u where u.document_id = ur."user"));
end $$;

-- The same for a user who keeps its ways in by a role beyond its accounts alone.
create function is_exempt_by_role(holder uuid, address text) returns boolean language plpgsql volatile as $$
begin
  return closing_connection_of(holder, address) is not null and is_operator(holder);
end $$;

-- The connection by which alone a user with this address signs in, because the only account that it belongs to closed the
-- other ways; null for other users.
create function required_connection_of(holder uuid, address text) returns uuid language plpgsql volatile as $$
declare
  closing uuid := closing_connection_of(holder, address);
begin
  return case when closing is not null and not is_operator(holder)
    and not has_other_account(holder, (select c.account from connection c where c.document_id = closing))
    then closing end;
end $$;

-- Whether another active member of a locked account has the role of this name there.
create function has_other_member_with(joined uuid, holder uuid, role_name text) returns boolean
language plpgsql volatile as $$
begin
  return exists (select from role r
    join account_member_role x on x.role = r.document_id
    join account_member m on m.document_id = x.member
    join "user" u on u.document_id = m."user"
    where r.name = role_name and m.account = joined and m."user" <> holder and u.is_actived and u.deleted_at is null);
end $$;

-- Serializes sign-ins of the same person at a connection, and those with the same address, as `lock_identity` does, and
-- returns the identity behind these locks.
create function lock_connection_identity(at_connection uuid, of_subject text, address text)
returns setof connection_identity language plpgsql volatile rows 1 as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('identity ' || at_connection || ' ' || of_subject, 0)),
    pg_advisory_xact_lock(hashtextextended('address ' || email_key(address), 0));
  return query select i.* from connection_identity i where i.connection = at_connection and i.subject = of_subject;
end $$;

-- Locks the users of a connection, of all domains or of one, in the order of their ids, and returns them.
create function lock_connection_users(asked uuid, of_domain text) returns uuid[] language plpgsql volatile as $$
declare
  holders uuid[] := array(select i."user" from connection_identity i
    where i.connection = asked and (of_domain is null
      or (select domain_of(u.email) = of_domain from "user" u where u.document_id = i."user"))
    order by i."user");
begin
  perform from "user" u where u.document_id = any(holders) order by u.document_id for no key update;
  return holders;
end $$;

-- Revokes API keys of locked users: all, or those that are bound to an account.
create function end_keys_of(holders uuid[], bound_to uuid, at timestamptz) returns void language plpgsql volatile as $$
begin
  update api_key set revoked_at = at, updated_at = at where document_id = any(array(
    select k.document_id from api_key k
    where k."user" = any(holders) and num_nulls(k.revoked_at) = 1 and (bound_to is null or k.account = bound_to)
    order by k.document_id for no key update));
end $$;

-- Ends what locked users opened, and revokes their API keys.
create function end_whole_access(holders uuid[], at timestamptz) returns void language plpgsql volatile as $$
declare
  holder uuid;
begin
  foreach holder in array holders loop
    perform end_access_of(holder, at, false, null);
  end loop;
  perform end_keys_of(holders, null, at);
end $$;

-- Every token of the members of several accounts with addresses of a connection is judged again, of all its proven domains
-- or of one.
create function invalidate_narrowed(asked uuid, of_domain text) returns void language plpgsql volatile as $$
declare
  owner uuid := (select c.account from connection c where c.document_id = asked);
begin
  perform invalidate_tokens_of(m."user") from account_member m
    where m.account = owner and has_other_account(m."user", owner)
      and exists (select from connection_domain d
        where d.domain = (select domain_of(u.email) from "user" u where u.document_id = m."user")
          and d.verified_at is not null and d.connection = asked and (of_domain is null or d.domain = of_domain));
end $$;

-- Ends the proofs of a connection, of all domains or of one.
create function end_proofs(asked uuid, of_domain text) returns void language plpgsql volatile as $$
begin
  delete from connection_proof p where p.connection = asked and (of_domain is null or of_domain = (
    select domain_of(u.email) from "user" u
    where u.document_id = (select s."user" from session s where s.document_id = p.session)));
end $$;

-- Opens the account of a locked connection to the unproven sessions of its members of several accounts.
create function end_narrowing(asked uuid) returns void language plpgsql volatile as $$
begin
  perform end_proofs(asked, null);
  perform invalidate_narrowed(asked, null);
end $$;

-- Ends what the users of a connection opened, of all domains or of one: sessions, tokens of apps, pending codes and API
-- keys; of users of several accounts, what its proofs opened. With `forgets` they are no longer known at the connection.
-- Returns their number.
create function end_connection_access(asked uuid, of_domain text, forgets boolean, at timestamptz) returns integer
language plpgsql volatile as $$
declare
  holders uuid[] := lock_connection_users(asked, of_domain);
  owner uuid := (select c.account from connection c where c.document_id = asked);
  alone uuid[] := array(select x.holder from unnest(holders) x (holder) where not has_other_account(x.holder, owner));
begin
  perform end_proofs(asked, of_domain);
  perform invalidate_narrowed(asked, of_domain);
  perform end_whole_access(alone, at);
  perform end_keys_of(holders, owner, at);
  if forgets then
    delete from connection_identity where connection = asked and "user" = any(holders);
  end if;
  return cardinality(holders);
end $$;

-- Whether a user has left all accounts but one, which closes the ways in that were open to it until now. Unbound API keys
-- would reach that account from now on.
create function has_lost_ways_in(holder uuid) returns boolean language plpgsql volatile as $$
begin
  return required_connection_of(holder, (select u.email from "user" u where u.document_id = holder)) is not null;
end $$;

-- Ends what the users of every connection of a deleted account opened, which is locked, and frees their domains; and what
-- members opened by ways that their only other account closes.
create function end_account_connections(asked uuid, at timestamptz) returns void language plpgsql volatile as $$
declare
  ours uuid[] := array(
    select c.document_id from connection c where c.account = asked order by c.document_id for update);
  known uuid[];
  leaving uuid[];
  exempt uuid[];
begin
  delete from connection_domain where connection = any(ours);
  known := array(select distinct i."user" from connection_identity i where i.connection = any(ours));
  leaving := array(select m."user" from account_member m
    where m.account = asked and has_other_account(m."user", asked));
  perform from "user" u where u.document_id = any(known || leaving) order by u.document_id for no key update;
  exempt := array(select x.holder from unnest(leaving) x (holder) where lock_is_operator(x.holder));
  delete from connection_proof where connection = any(ours);
  perform end_whole_access(array(
    select x.holder from unnest(known) x (holder) where not has_other_account(x.holder, asked)
    union
    select x.holder from unnest(leaving) x (holder) where x.holder <> all(exempt) and has_lost_ways_in(x.holder)), at);
  delete from connection_identity where connection = any(ours);
end $$;

-- Ends what members opened by the ways in that a locked connection now closes, of all its proven domains or of one; the
-- sessions of members of several accounts lack its account from now on. Operators keep theirs, and so does the user who
-- closes them: of several accounts in the session that asked, for the hours of the connection.
create function end_closed_access(asked uuid, of_domain text, spared uuid, spared_session uuid, at timestamptz)
returns void language plpgsql volatile as $$
declare
  owner uuid := (select c.account from connection c where c.document_id = asked);
  holders uuid[];
  holder uuid;
begin
  holders := array(select m."user" from account_member m
    where m.account = owner
      and exists (select from connection_domain d
        where d.domain = (select domain_of(u.email) from "user" u where u.document_id = m."user")
          and d.verified_at is not null and d.connection = asked and (of_domain is null or d.domain = of_domain))
    order by m."user");
  perform from "user" u where u.document_id = any(holders) order by u.document_id for no key update;
  -- Behind the lock: a role beyond accounts is given and taken behind it too.
  holders := array(select x.holder from unnest(holders) x (holder) where not lock_is_operator(x.holder));
  perform end_proofs(asked, of_domain);
  if spared = any(holders) and has_other_account(spared, owner) then
    insert into connection_proof (session, connection, proven_at, expires_at)
      select s.document_id, asked, at, at + c.session_hours * interval '1 hour'
      from session s, connection c
      where s.document_id = root_session(spared_session) and s."user" = spared and c.document_id = asked;
  end if;
  foreach holder in array holders loop
    if has_other_account(holder, owner) then
      update session set account = null, updated_at = at where document_id = any(array(
        select s.document_id from session s
        where s."user" = holder and s.revoked_at is null and s.account = owner
          and (holder <> spared or s.document_id is distinct from root_session(spared_session))
        order by s.document_id for no key update));
      perform invalidate_tokens_of(holder);
    elsif holder <> spared then
      perform end_access_of(holder, at, false, null);
    end if;
  end loop;
end $$;

-- Removes a locked user from an account. The connections of the account know it no longer, and what they opened ends; for
-- a member of several accounts, what their proofs opened.
create function remove_member(holder uuid, leaving uuid, at timestamptz) returns void language plpgsql volatile as $$
declare
  is_exempt boolean := lock_is_operator(holder);
  ours uuid[] := array(select c.document_id from connection c where c.account = leaving);
  is_known boolean := exists (
    select from connection_identity i where i."user" = holder and i.connection = any(ours));
  sessions uuid[] := array(select s.document_id from session s where s."user" = holder and s.revoked_at is null);
begin
  delete from account_member where account = leaving and "user" = holder;
  delete from connection_proof where session = any(sessions) and connection = any(ours);
  delete from connection_identity where "user" = holder and connection = any(ours);
  if (is_known and not has_other_account(holder, leaving)) or (not is_exempt and has_lost_ways_in(holder)) then
    perform end_whole_access(array[holder], at);
  end if;
end $$;
