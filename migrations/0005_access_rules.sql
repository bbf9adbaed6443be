-- not additive: the table of failed sign-ins has other columns
-- Sign-in throttle by e-mail and network address together, and what older rows need under the present rules.

-- Rows of three kinds: a network address (empty email_hash), an e-mail address over all network addresses (empty
-- address_hash), and the pair of both. The old rows held a lock on the e-mail address alone, which no longer exists.
drop table login_throttle;
create table login_throttle (
  email_hash bytea not null,
  address_hash bytea not null,
  failures integer not null,
  last_failure_at timestamptz(3) not null,
  wait_until timestamptz(3),
  -- Of a pair: from when on the delay of its e-mail address no longer holds it up, whatever others do meanwhile.
  turn_at timestamptz(3),
  primary key (email_hash, address_hash)
);

-- Deleting an account, and leaving it, takes it out of the sessions that stand in it.
create index session_account_idx on session (account) where account is not null;

-- Enabling a user brings no API key back, so the keys of users who are disabled or deleted already end here.
update api_key set
  revoked_at = date_trunc('milliseconds', statement_timestamp()),
  updated_at = date_trunc('milliseconds', statement_timestamp())
where revoked_at is null
  and "user" in (select document_id from "user" where not is_actived or deleted_at is not null);

-- Sessions and webhooks of accounts that are deleted already, as the deletion of an account leaves them from now on.
update session set account = null
where account in (select document_id from account where deleted_at is not null);
update webhook set
  is_actived = false,
  disabled_at = date_trunc('milliseconds', statement_timestamp()),
  disabled_reason = 'account-deleted',
  updated_at = date_trunc('milliseconds', statement_timestamp())
where deleted_at is null and account in (select document_id from account where deleted_at is not null);
