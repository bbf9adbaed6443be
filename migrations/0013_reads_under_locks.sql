-- additive
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

-- What a user holds: the patterns of its global roles, those of its account-scoped roles, those of the roles of each
-- membership, and its accounts that are not deleted.
create function user_holdings(holder uuid)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
begin
  return query select
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and not r.is_account_scoped order by p.pattern),
    array(select distinct p.pattern from user_role ur
      join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
      where ur."user" = holder and r.is_account_scoped order by p.pattern),
    array(select json_build_object('account', m.account, 'patterns', array_agg(distinct p.pattern order by p.pattern))
      from account_member m join account a on a.document_id = m.account
      join account_member_role mr on mr.member = m.document_id
      join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
      where m."user" = holder and a.deleted_at is null and r.is_account_scoped
      group by m.account order by m.account),
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

-- Locks a session and every session opened from it, and returns those that are unrevoked. Opening a session from another one
-- locks that one: each turn finds what was opened while the turn before waited for its locks, and the last one finds nothing,
-- since every session of the tree is locked then. A turn locks in the order of the ids, which prevents deadlocks.
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
        select child.document_id from session child join tree t on child.parent = t.document_id
      )
      select s.document_id from session s
      where s.document_id in (select t.document_id from tree t) and s.revoked_at is null
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

-- Revokes the sessions of a user and returns those that were unrevoked. Opening a session locks the user: one that is being
-- opened is there behind this lock.
create function revoke_sessions_of(holder uuid, at timestamptz) returns setof uuid language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = holder for no key update;
  return query
    update session set revoked_at = at, updated_at = at
    where document_id in (
      select s.document_id from session s where s."user" = holder and s.revoked_at is null
      order by s.document_id for no key update)
    returning document_id;
end $$;

-- The address that a link was sent to, if its token is unused, of this user and unexpired. Uses of the tokens of a user lock
-- the user: behind that lock, one of two concurrent uses finds the token.
create function proven_address(holder uuid, hash bytea, asked text, at timestamptz) returns setof text
language plpgsql volatile rows 1 as $$
begin
  return query select t.email from proof_token t
    where t.token_hash = hash and t.purpose = asked and t."user" = holder and t.expires_at > at;
end $$;

-- The identities of a user.
create function identities_of(holder uuid) returns setof identity language plpgsql volatile as $$
begin
  return query select i.* from identity i where i."user" = holder;
end $$;

-- Serializes sign-ins of one person until the transaction ends, those of the same identity and those with the same address,
-- and returns the identity behind these locks: so two first sign-ins at once make one user.
create function lock_identity(at_provider text, of_subject text, address text) returns setof identity
language plpgsql volatile rows 1 as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('identity ' || at_provider || ' ' || of_subject, 0)),
    pg_advisory_xact_lock(hashtextextended('address ' || lower(address), 0));
  return query select i.* from identity i where i.provider = at_provider and i.subject = of_subject;
end $$;

-- Whether a user exists, not deleted.
create function is_living_user(asked uuid) returns boolean language plpgsql volatile as $$
begin
  return exists (select from "user" u where u.document_id = asked and u.deleted_at is null);
end $$;
