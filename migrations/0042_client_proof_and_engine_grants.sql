-- additive
-- A session of an app of a managed engine names its grant here.
drop function claim_exchange(uuid, text, boolean, text, text, text, timestamptz, timestamptz);
create function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz,
  began_at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[], allowed text[], browser uuid, kept_grant uuid)
language plpgsql volatile rows 1 as $$
declare
  person uuid := coalesce(asked, person_of_subject(subject));
  active boolean;
  ended boolean;
  apps_ended timestamptz;
  opened_in uuid;
begin
  select u.document_id, u.is_actived and u.deleted_at is null, u.apps_ended_at into person, active, apps_ended
    from "user" u where u.document_id = person for share;
  -- The client before the grant: its deletion holds the one while it waits for the other.
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth client ' || of_client, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  if not is_kept and not ended then
    ended := is_engine_grant_revoked(person, of_client);
  end if;
  if is_kept then
    opened_in := browser_of_token(of_token);
    perform from session s where s.document_id = opened_in for share;
  end if;
  return query select person, coalesce(active, false),
    case
      when ended then 'grant_ended'
      when is_kept then provider_token_fault(of_client, of_grant, of_token, at)
      -- The engine writes whole seconds.
      when date_trunc('second', apps_ended) >= date_trunc('second', began_at) then 'access_ended'
    end,
    accounts_of(person),
    case when is_kept then (select g.scopes from oauth_grant g where g.document_id = uuid_of(of_grant)) end,
    opened_in,
    case when not is_kept then (
      select g.document_id from engine_grant g
      where g."user" = person and g.client = uuid_of(of_client) and g.revoked_at is null)
    end;
end $$;

-- What the person granted to an app at its last approval, of the scopes of the API. What was granted before the present grant
-- began was taken back: a consent that is given at the engine alone revives none of it.
create or replace function api_scope_of(holder uuid, of_client text) returns text language plpgsql stable as $$
begin
  return (select d.api_scope from oauth_engine_decision d
    where d."user" = holder and d.client_id = of_client and d.decision = 'approve' and d.decided_at is not null
      and d.decided_at >= coalesce((
        select g.created_at from engine_grant g where g."user" = holder and g.client = uuid_of(of_client)), '-infinity')
    order by d.decided_at desc limit 1);
end $$;

-- How a client proves itself, beside its type: its method, its public keys or where they are, and whether its requests are
-- pushed. Null: by its secret alone.
alter table oauth_client add column proof json;
