-- additive
-- The nonces of the handshake tokens that were exchanged. A row is kept until its token has expired.
create table sso_nonce (
  nonce_hash bytea primary key,
  expires_at timestamptz(3) not null
);
create index sso_nonce_expires_idx on sso_nonce (expires_at);
