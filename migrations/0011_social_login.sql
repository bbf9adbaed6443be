-- not additive: it renames a column of identities
-- Social login: what a provider says about a person, flows that are under way, and the one-time codes of deep links.

alter table identity rename column email_verified to is_email_verified;
alter table identity
  add column name text,
  add column avatar_url text,
  add column last_login_at timestamptz(3);

-- A sign-in, or the connection of a provider, between its start and its callback. Only the hash of the state is kept, and
-- the verifier and the nonce are sealed: a copy of this table completes no flow.
create table login_flow (
  state_hash bytea primary key,
  provider text not null,
  purpose text not null check (purpose in ('sign-in', 'link')),
  -- Who connects the provider.
  "user" uuid references "user" (document_id) on delete cascade,
  redirect_url text not null,
  is_deep_link boolean not null,
  -- The hash of the cookie of the browser that began; null for a flow that any browser may finish.
  binding_hash bytea,
  secret text not null,
  -- A deep link that asked for a code (RFC 7636, S256).
  code_challenge text,
  -- Apple posts the name beside its answer, once in a lifetime.
  posted_name text,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  created_at timestamptz(3) not null,
  check ((purpose = 'link') = ("user" is not null))
);
create index login_flow_expires_idx on login_flow (expires_at);

-- A code that an app exchanges, once and soon: for the tokens of a deep link, or for the connection of a provider.
create table login_code (
  code_hash bytea primary key,
  purpose text not null check (purpose in ('sign-in', 'link')),
  "user" uuid not null references "user" (document_id) on delete cascade,
  code_challenge text,
  is_new_user boolean not null default false,
  -- What will be connected.
  identity jsonb,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index login_code_expires_idx on login_code (expires_at);
