-- not additive: code before it opens sessions without the second factor
-- Second factors: one-time codes of an app, recovery codes, passkeys, and roles that need one of them.

alter table role add column requires_second_factor boolean not null default false;

-- A caller holds the roles above only in a session with a second factor, and what is dangerous needs a fresh one.
drop trigger note_change on role;
create trigger note_change after update of is_account_scoped, requires_second_factor or delete on role
  for each statement execute function note_all();
drop trigger note_change on session;
create trigger note_change after update of "user", account, expires_at, revoked_at, amr, auth_time or delete on session
  for each row execute function note_session_change();

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
create trigger note_change after insert or update of "user", confirmed_at or delete on totp_factor
  for each row execute function note_user_row_change();

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
create trigger note_change after insert or update of "user" or delete on passkey
  for each row execute function note_user_row_change();

-- What a person or a browser has to answer: the second step of a sign-in, or the challenge of a passkey. Hashed.
create table factor_challenge (
  challenge_hash bytea primary key,
  purpose text not null check (purpose in ('sign-in', 'passkey-registration', 'passkey-sign-in', 'passkey-factor')),
  -- Null for a sign-in with a passkey, which names the person only in its answer.
  "user" uuid references "user" (document_id) on delete cascade,
  session uuid references session (document_id) on delete cascade,
  address_hash bytea,
  -- A hash of the hash of the password that was right: a changed password ends the sign-in.
  proof_hash bytea,
  attempts integer not null default 0,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index factor_challenge_expires_idx on factor_challenge (expires_at);
create index factor_challenge_user_idx on factor_challenge ("user");
create index factor_challenge_session_idx on factor_challenge (session);

-- Whether a person has a second factor. Recovery codes alone are none.
create function has_second_factor(person uuid) returns boolean language sql stable as $$
  select exists (select from totp_factor f where f."user" = person and f.confirmed_at is not null)
    or exists (select from passkey p where p."user" = person)
$$;

-- As before, without the roles that need a second factor where none was proven.
drop function user_holdings(uuid);
create function user_holdings(holder uuid, has_proof boolean default true)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
begin
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
      from account_member m join account a on a.document_id = m.account
      join account_member_role mr on mr.member = m.document_id
      join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
      where m."user" = holder and a.deleted_at is null and r.is_account_scoped
        and (has_proof or not r.requires_second_factor)
      group by m.account order by m.account),
    array(select m.account from account_member m join account a on a.document_id = m.account
      where m."user" = holder and a.deleted_at is null order by m.account);
end $$;
