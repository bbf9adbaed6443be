-- not additive: a session must say when its person signed in
-- Sessions that say how and when the person signed in, roles of a membership, mails, proofs of an address, invitations.

-- amr: the methods of the sign-in (RFC 8176). auth_time: when the person proved its identity; a session opened from
-- another one has that of its parent. last_used_at: to some minutes.
alter table session
  add column amr text[] not null default '{}',
  add column acr text,
  add column auth_time timestamptz(3),
  add column last_used_at timestamptz(3);
update session set auth_time = created_at, last_used_at = updated_at;
alter table session alter column auth_time set not null, alter column last_used_at set not null;

-- Of a spent token: a hash of the client that spent it, and what finds its successor again without keeping it.
alter table session_refresh
  add column spent_by bytea,
  add column successor_salt bytea,
  add column successor_hash bytea;

-- Account-scoped roles that hold in the account of one membership only.
create table account_member_role (
  member uuid not null references account_member (document_id) on delete cascade,
  role uuid not null references role (document_id) on delete cascade,
  created_at timestamptz(3) not null,
  primary key (member, role)
);
create index account_member_role_role_idx on account_member_role (role);

-- A membership that is deleted takes its roles along, and is noted by its own trigger.
create function note_member_role_change() returns trigger language plpgsql as $$
declare
  owner uuid;
begin
  select "user" into owner from account_member
  where document_id = case when tg_op = 'DELETE' then old.member else new.member end;
  if owner is not null then
    perform note_change('u:' || owner);
  end if;
  return null;
end $$;
create trigger note_change after insert or update or delete on account_member_role
  for each row execute function note_member_role_change();

-- Event types that callers with an account role see in the catalogue.
alter table event add column is_tenant_visible boolean not null default false;
-- As new rows of the catalogue are marked.
update event set is_tenant_visible = true
where source <> 'external' and account_scope = 'account'
  and internal !~ '^(webhook|webhook-event|webhook-dispatch|event|event-occurrence)[.]';

-- Mails that wait to be sent. What they say is sealed, and erased once they are sent or given up.
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
  ended_at timestamptz(3)
);
create index mail_outbox_due_idx on mail_outbox (due_at) where status = 'waiting';
create index mail_outbox_ended_idx on mail_outbox (ended_at) where ended_at is not null;

-- Where no mail server is configured, development keeps its latest mails here, to be read at /auth/mail.
create table kept_mail (
  document_id uuid primary key,
  recipient text not null,
  subject text not null,
  text text not null,
  created_at timestamptz(3) not null
);

-- What a link in a mail proves: hashed, deleted by its use.
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
  updated_at timestamptz(3) not null
);
create unique index account_invitation_open_key on account_invitation (account, lower(email))
  where accepted_at is null and revoked_at is null;
create index account_invitation_account_idx on account_invitation (account, created_at desc, document_id desc);
