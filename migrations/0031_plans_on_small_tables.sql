-- additive
-- Plans that were made on small, analysed tables: with a handful of rows a join that reads an index through costs as little
-- as a look-up for each row, and the plan is kept while the tables grow.

-- The memberships of a person in their order: as this index also sorts, PostgreSQL prefers it to that of the accounts.
create index account_member_user_next on account_member ("user", created_at);
drop index account_member_user_idx;
alter index account_member_user_next rename to account_member_user_idx;

-- A small index of instants and ids serves a look-up of an id as well as the primary key does, by the costs of PostgreSQL 18,
-- and the workers look deliveries up by their ids. So these indexes end with the instant.
create index provisioning_delivery_created_next on provisioning_delivery (created_at);
drop index provisioning_delivery_created_idx;
alter index provisioning_delivery_created_next rename to provisioning_delivery_created_idx;
create index provisioning_delivery_user_next on provisioning_delivery (user_id, created_at);
drop index provisioning_delivery_user_idx;
alter index provisioning_delivery_user_next rename to provisioning_delivery_user_idx;

-- The open deliveries of a user in their order, which no other index has: that of the positions holds all that have ended.
create index provisioning_delivery_open_next on provisioning_delivery (target, user_id, (position + 0))
  where ended_at is null;
drop index provisioning_delivery_open_idx;
alter index provisioning_delivery_open_next rename to provisioning_delivery_open_idx;

-- As before, but each account and each role of a membership is looked up by its key.
create or replace function first_account_of(holder uuid) returns uuid language sql stable as $$
  select m.account from account_member m
    where m."user" = holder and (select a.deleted_at is null from account a where a.document_id = m.account)
    order by m.created_at, m.document_id limit 1
$$;

create or replace function accounts_of(holder uuid) returns json[] language plpgsql volatile as $$
begin
  return array(select json_build_object('id', a.document_id, 'name', a.name)
    from account_member m
    cross join lateral (select * from account x where x.document_id = m.account offset 0) a
    where m."user" = holder and a.deleted_at is null order by m.created_at, m.document_id);
end $$;

create or replace function user_holdings(holder uuid, has_proof boolean default true)
returns table (patterns text[], account_patterns text[], membership_patterns json[], accounts uuid[])
language plpgsql volatile rows 1 as $$
declare
  members uuid[];
  joined uuid[];
begin
  select coalesce(array_agg(m.document_id order by m.account), '{}'), coalesce(array_agg(m.account order by m.account), '{}')
    into members, joined
    from (select x.document_id, x.account from account_member x where x."user" = holder order by x.created_at) m
    where (select a.deleted_at is null from account a where a.document_id = m.account);
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
      from unnest(members, joined) m (document_id, account)
      cross join lateral (select x.role from account_member_role x where x.member = m.document_id offset 0) mr
      join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
      where r.is_account_scoped and (has_proof or not r.requires_second_factor)
      group by m.account order by m.account),
    joined;
end $$;

-- As before, but what is locked is listed first, and then looked up by its ids.
create or replace function revoke_sessions_of(holder uuid, at timestamptz) returns setof uuid
language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = holder for no key update;
  return query
    update session set revoked_at = at, updated_at = at
    where document_id = any(array(
      select s.document_id from session s where s."user" = holder and s.revoked_at is null
      order by s.document_id for no key update))
    returning document_id;
end $$;

create or replace function end_grant(ended text, is_final boolean, at timestamptz) returns setof uuid
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth grant ' || ended, 0));
  if is_final then
    insert into oauth_ended_grant (grant_id, ended_at) values (ended, at) on conflict do nothing;
  end if;
  return query
    update session set revoked_at = at, updated_at = at
    where document_id = any(array(
      select s.document_id from session s where s.grant_id = ended and s.revoked_at is null
      order by s.document_id for no key update))
    returning document_id;
end $$;

create or replace function end_engine_grant(holder uuid, ended uuid, at timestamptz) returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  update engine_grant set revoked_at = at, updated_at = at, is_ended_there = false
    where "user" = holder and client = ended and revoked_at is null;
  update session set revoked_at = at, updated_at = at
  where document_id = any(array(
    select s.document_id from session s
    where s."user" = holder and s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update));
end $$;

-- The grants of the client, too, are looked up by their index alone (`num_nonnulls`: PostgreSQL may take the condition that a
-- column is null for a reason to read an index of such rows through).
create or replace function end_client(ended uuid, at timestamptz) returns void language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  perform g.document_id from oauth_grant g
    where g.client = ended and num_nonnulls(g.revoked_at) = 0 order by g.document_id for no key update;
  update session set revoked_at = at, updated_at = at
  where document_id = any(array(
    select s.document_id from session s where s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update));
end $$;
