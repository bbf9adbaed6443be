-- additive
-- The schema before outbound webhooks were released (docs/contract/webhooks.md#legacy-migration): users, accounts,
-- contracts, and the first, unsigned webhooks.

create table "user" (
  document_id uuid primary key,
  email text not null,
  email_verified_at timestamptz(3),
  name text,
  avatar_url text,
  password_hash text,
  is_actived boolean not null default true,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3)
);
-- An address belongs to one living user; case does not make two.
create unique index user_email_key on "user" (lower(email)) where deleted_at is null;

create table account (
  document_id uuid primary key,
  name text not null,
  created_by uuid references "user" (document_id),
  updated_by uuid references "user" (document_id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3)
);

create table account_member (
  document_id uuid primary key,
  account uuid not null references account (document_id) on delete cascade,
  "user" uuid not null references "user" (document_id) on delete cascade,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (account, "user")
);
create index account_member_user_idx on account_member ("user");

create table role (
  document_id uuid primary key,
  name text not null unique,
  description text,
  is_system boolean not null default false,
  -- Whether its permissions hold for the accounts of the user only (`member`, docs/contract/identity.md#system-roles).
  is_account_scoped boolean not null default false,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

create table permission (
  name text primary key,
  description text,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

-- A pattern is a permission's name, `resource:*` or `*:*` (docs/contract/identity.md#permission-patterns).
create table role_permission (
  role uuid not null references role (document_id) on delete cascade,
  pattern text not null,
  primary key (role, pattern)
);

create table user_role (
  "user" uuid not null references "user" (document_id) on delete cascade,
  role uuid not null references role (document_id) on delete cascade,
  created_at timestamptz(3) not null,
  primary key ("user", role)
);
create index user_role_role_idx on user_role (role);

create table identity (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  provider text not null,
  subject text not null,
  email text,
  email_verified boolean not null default false,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (provider, subject)
);
create index identity_user_idx on identity ("user");

create table session (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id) on delete cascade,
  account uuid references account (document_id),
  parent uuid references session (document_id),
  address text,
  user_agent text,
  expires_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index session_user_idx on session ("user") where revoked_at is null;
create index session_expires_idx on session (expires_at);
-- Ending a session ends those that were opened from it (docs/contract/sessions.md#what-ends-what).
create index session_parent_idx on session (parent) where parent is not null;

-- Only hashes: a copy of this table signs nobody in (docs/contract/sessions.md#refresh-tokens).
create table session_refresh (
  token_hash bytea primary key,
  session uuid not null references session (document_id) on delete cascade,
  spent_at timestamptz(3),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index session_refresh_session_idx on session_refresh (session);

create table audit_log (
  document_id uuid primary key,
  action text not null,
  outcome text not null,
  "user" uuid,
  session uuid,
  api_key uuid,
  account uuid,
  target uuid,
  address text,
  request_id text,
  detail jsonb not null default '{}',
  created_at timestamptz(3) not null
);
create index audit_log_created_idx on audit_log (created_at desc, document_id desc);
create index audit_log_target_idx on audit_log (target, created_at desc);
create index audit_log_user_idx on audit_log ("user", created_at desc);

create table contract (
  document_id uuid primary key,
  account uuid not null references account (document_id),
  name text not null,
  status text not null,
  created_by uuid references "user" (document_id),
  updated_by uuid references "user" (document_id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3)
);
create index contract_account_idx on contract (account, created_at desc) where deleted_at is null;
create index contract_created_idx on contract (created_at desc, document_id desc) where deleted_at is null;

create table event (
  document_id uuid primary key,
  internal text not null unique,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

create table webhook (
  document_id uuid primary key,
  url text not null,
  name text,
  account uuid not null references account (document_id),
  secret text,
  is_actived boolean not null default true,
  created_by uuid references "user" (document_id),
  updated_by uuid references "user" (document_id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3)
);

create table webhook_event (
  document_id uuid primary key,
  webhook uuid not null references webhook (document_id) on delete cascade,
  event uuid not null references event (document_id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  unique (webhook, event)
);

create table webhook_dispatch (
  document_id uuid primary key,
  webhook uuid not null references webhook (document_id) on delete cascade,
  event text not null,
  status text not null,
  retry integer not null default 0,
  last_error text,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
