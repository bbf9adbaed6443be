-- additive
-- The OAuth provider: clients with their secrets, signing keys, what people allowed, and the state of the protocol.

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
  deleted_at timestamptz(3)
);

-- Several secrets of one client are valid at once while it rotates.
create table oauth_client_secret (
  document_id uuid primary key,
  client uuid not null references oauth_client (document_id),
  secret_hash bytea not null,
  expires_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index oauth_client_secret_client_idx on oauth_client_secret (client);

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

-- What a person allows a client to do.
create table oauth_grant (
  document_id uuid primary key,
  "user" uuid not null references "user" (document_id),
  client uuid not null references oauth_client (document_id),
  scopes text[] not null,
  -- Scopes that were asked for and not given.
  refused_scopes text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  revoked_at timestamptz(3)
);
create unique index oauth_grant_live_key on oauth_grant ("user", client) where revoked_at is null;
create index oauth_grant_created_idx on oauth_grant (created_at, document_id);

-- The state of the protocol: codes, tokens, sessions, interactions. Ids are credentials, so only their hashes are kept.
create table oauth_state (
  model text not null,
  id_hash bytea not null,
  payload jsonb not null,
  -- The family of tokens that one authorization led to, and what the person allowed.
  grant_id text,
  consent uuid,
  uid text,
  user_code_hash bytea,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  -- Of a spent refresh token: a hash of the client that spent it, and for some seconds the encrypted answer.
  consumed_by bytea,
  answer text,
  primary key (model, id_hash)
);
create index oauth_state_grant_idx on oauth_state (grant_id) where grant_id is not null;
create index oauth_state_consent_idx on oauth_state (consent) where consent is not null;
create index oauth_state_uid_idx on oauth_state (uid) where uid is not null;
create unique index oauth_state_user_code_key on oauth_state (user_code_hash) where user_code_hash is not null;
create index oauth_state_expires_idx on oauth_state (expires_at);
create index oauth_state_answer_idx on oauth_state (consumed_at) where answer is not null;
