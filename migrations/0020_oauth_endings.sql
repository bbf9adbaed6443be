-- not additive: code before it opens sessions with scopes that a grant lost
-- What ends with an app: an exchange waits for the deletion of its client, and looks its token up by the indexes.

create index session_client_idx on session (client_id) where client_id is not null and revoked_at is null;

-- The UUID that a text is; null for any other text.
create function uuid_of(given text) returns uuid language sql immutable as $$
  select case when given ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then given::uuid end
$$;

-- The account with the longest membership.
create function first_account_of(holder uuid) returns uuid language sql stable as $$
  select m.account from account_member m join account a on a.document_id = m.account
    where m."user" = holder and a.deleted_at is null order by m.created_at, m.document_id limit 1
$$;

create or replace function provider_token_fault(of_client text, of_grant text, of_token text, at timestamptz) returns text
language plpgsql stable as $$
declare
  asked_client uuid := uuid_of(of_client);
  asked_grant uuid := uuid_of(of_grant);
  token jsonb;
begin
  if not exists (select from oauth_client c where c.document_id = asked_client and c.deleted_at is null) then
    return 'client_unknown';
  elsif not exists (select from oauth_grant g
      where g.document_id = asked_grant and g.client = asked_client and g.revoked_at is null) then
    return 'grant_unknown';
  end if;
  select t.payload into token from oauth_state t
    where t.model = 'AccessToken' and t.id_hash = sha256(convert_to(of_token, 'UTF8'))
      and t.consent = asked_grant and t.expires_at > at;
  if token is null then
    return 'token_unknown';
  -- A token without offline_access ends with the session of the provider, and that one with the session of the browser.
  elsif token ->> 'expiresWithSession' = 'true' and not exists (select from oauth_state s
      where s.model = 'Session' and s.uid = token ->> 'sessionUid' and s.expires_at > at
        and s.payload ->> 'accountId' = token ->> 'accountId'
        and (s.payload ->> 'browserSession' is null or exists (select from session b
          where b.document_id = (s.payload ->> 'browserSession')::uuid
            and b.revoked_at is null and b.expires_at > at))) then
    return 'session_ended';
  end if;
  return null;
end $$;

-- `allowed`: the scopes that the grant of a kept token has by now, which may be fewer than those of the token.
drop function claim_exchange(uuid, text, boolean, text, text, text, timestamptz);
create function claim_exchange(
  asked uuid, subject text, is_kept boolean, of_client text, of_grant text, of_token text, at timestamptz
) returns table (holder uuid, is_active boolean, fault text, accounts json[], allowed text[])
language plpgsql volatile rows 1 as $$
declare
  person uuid := coalesce(asked, person_of_subject(subject));
  active boolean;
  ended boolean;
begin
  -- The client before the grant: its deletion holds the one while it waits for the other.
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth client ' || of_client, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('oauth grant ' || coalesce(of_grant, ''), 0));
  ended := exists (select from oauth_ended_grant g where g.grant_id = of_grant);
  select u.document_id, u.is_actived and u.deleted_at is null into person, active
    from "user" u where u.document_id = person for share;
  return query select person, coalesce(active, false),
    case when ended then 'grant_ended' when is_kept then provider_token_fault(of_client, of_grant, of_token, at) end,
    accounts_of(person),
    case when is_kept then (select g.scopes from oauth_grant g where g.document_id = uuid_of(of_grant)) end;
end $$;

-- Ends the sessions that were opened for a client. Its grants are locked in the order in which their own ends lock them.
create function end_client(ended uuid, at timestamptz) returns void language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  perform g.document_id from oauth_grant g
    where g.client = ended and g.revoked_at is null order by g.document_id for no key update;
  update session set revoked_at = at, updated_at = at
  where document_id in (
    select s.document_id from session s where s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update);
end $$;

-- Processes hold clients in memory. Note: 'c:<client>'.
create function note_oauth_client_change() returns trigger language plpgsql as $$
begin
  perform note_change('c:' || case when tg_table_name = 'oauth_client' then to_jsonb(old) ->> 'document_id'
    else coalesce(to_jsonb(new), to_jsonb(old)) ->> 'client' end);
  return null;
end $$;
create trigger note_change after update or delete on oauth_client
  for each row execute function note_oauth_client_change();
create trigger note_change after insert or update or delete on oauth_client_secret
  for each row execute function note_oauth_client_change();
