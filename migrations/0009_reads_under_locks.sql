-- What a change decides on is read behind the locks that keep it. A statement reads as of its own start, and so not what
-- was committed while it waited for a lock; a volatile function reads as of its call. These functions take the id of a
-- locked row, so that they run behind the lock: one statement locks, waits and reads. They are in PL/pgSQL, whose plans a
-- connection keeps, and which is never merged into the statement that calls it.

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

-- What a user holds: the patterns of its global roles, those of its account-scoped roles, and its accounts that are not
-- deleted.
create function user_holdings(holder uuid) returns table (patterns text[], account_patterns text[], accounts uuid[])
language plpgsql volatile rows 1 as $$
begin
  return query select
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and not r.is_account_scoped order by p.pattern),
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and r.is_account_scoped order by p.pattern),
    array(select m.account from account_member m join account a on a.document_id = m.account
      where m."user" = holder and a.deleted_at is null order by m.account);
end $$;

-- The accounts of a user that are not deleted, the longest membership first: id and name.
create function accounts_of(holder uuid) returns json[] language plpgsql volatile as $$
begin
  return array(select json_build_object('id', a.document_id, 'name', a.name)
    from account_member m join account a on a.document_id = m.account
    where m."user" = holder and a.deleted_at is null order by m.created_at, m.document_id);
end $$;

-- The membership of a user in an account.
create function membership_of(holder uuid, joined uuid) returns setof account_member language plpgsql volatile rows 1 as $$
begin
  return query select m.* from account_member m where m.account = joined and m."user" = holder;
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

-- What decides whether a token may create an API key: whether its session or key is valid and its user active, when the
-- key of the token expires, and how many keys of the user are valid.
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

-- The links of a webhook to event types, deleted ones too.
create function links_of(subscriber uuid) returns setof webhook_event language plpgsql volatile as $$
begin
  return query select s.* from webhook_event s where s.webhook = subscriber;
end $$;

-- Whether an account exists, not deleted.
create function is_living_account(asked uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from account a where a.document_id = asked and a.deleted_at is null);
end $$;
