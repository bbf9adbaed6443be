-- additive
-- E-mail addresses are compared by one rule, which does not depend on the locale of the database: the letters A to Z in any
-- case are equal, and every other character is itself (docs/contract/identity.md#e-mail-addresses). `lower` of a locale also
-- makes an i of U+0130 and a k of U+212A.

-- In a language that plans do not look into: they name the function, and so does the index.
create function email_key(address text) returns text language plpgsql immutable strict parallel safe as $$
begin
  return lower(address collate "C");
end $$;

-- A locale may have kept addresses apart that are one by the rule above (in Turkish ones, those with I and i). Of living
-- people with one address, the one who proved it first, else the oldest, keeps it. The others keep their sessions and
-- everything else, but their address does not find them until they get another one.
alter table "user" add column is_email_shadowed boolean not null default false;

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

create unique index user_email_next on "user" (email_key(email))
  where deleted_at is null and not is_email_shadowed and email_key(email) is not null;
drop index user_email_key;
-- Processes of the release before look people up by it.
create index user_email_lower_idx on "user" (lower(email)) where deleted_at is null and lower(email) is not null;
alter index user_email_next rename to user_email_key;

update account_invitation i set revoked_at = now(), updated_at = now()
from (
  select document_id, row_number() over (
    partition by account, email_key(email) order by created_at desc, document_id desc) as position
  from account_invitation where accepted_at is null and revoked_at is null
) ranked
where i.document_id = ranked.document_id and ranked.position > 1;

create unique index account_invitation_open_next on account_invitation (account, email_key(email))
  where accepted_at is null and revoked_at is null and email_key(email) is not null;
drop index account_invitation_open_key;
alter index account_invitation_open_next rename to account_invitation_open_key;

create or replace function lock_identity(at_provider text, of_subject text, address text) returns setof identity
language plpgsql volatile rows 1 as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('identity ' || at_provider || ' ' || of_subject, 0)),
    pg_advisory_xact_lock(hashtextextended('address ' || email_key(address), 0));
  return query select i.* from identity i where i.provider = at_provider and i.subject = of_subject;
end $$;
