-- additive
-- Plans without statistics: until somebody analyses a table, PostgreSQL expects that `deleted_at is null` or
-- `revoked_at is null` leaves next to nothing of it, and looks a row up by its key through a whole index of such rows. Each
-- of these indexes now holds also the condition that one of its columns is not null. A comparison with that column implies
-- it, and no other condition does: PostgreSQL reads the index for a value of that column only.

create index session_user_next on session ("user") where revoked_at is null and "user" is not null;
drop index session_user_idx;
alter index session_user_next rename to session_user_idx;

create unique index user_email_next on "user" (lower(email)) where deleted_at is null and lower(email) is not null;
drop index user_email_key;
alter index user_email_next rename to user_email_key;

create unique index account_invitation_open_next on account_invitation (account, lower(email))
  where accepted_at is null and revoked_at is null and lower(email) is not null;
drop index account_invitation_open_key;
alter index account_invitation_open_next rename to account_invitation_open_key;

-- All webhooks of an account: its deletion and the explanation of a routing look up the inactive and the deleted ones too.
create index webhook_account_next on webhook (account) where account is not null;
drop index webhook_account_idx;
alter index webhook_account_next rename to webhook_account_idx;

create index webhook_owner_next on webhook (account) where not is_global and deleted_at is null and account is not null;
drop index webhook_owner_idx;
alter index webhook_owner_next rename to webhook_owner_idx;

create index webhook_event_fan_out_next on webhook_event (event, account, webhook)
  where deleted_at is null and event is not null;
drop index webhook_event_fan_out_idx;
alter index webhook_event_fan_out_next rename to webhook_event_fan_out_idx;

create index contract_account_next on contract (account, created_at desc) where deleted_at is null and account is not null;
drop index contract_account_idx;
alter index contract_account_next rename to contract_account_idx;

-- The grants of a client, when it is deleted.
create index oauth_grant_client_idx on oauth_grant (client);

-- PostgreSQL leaves `is not null` out of a statement where the column is declared so, and then does not see that the
-- statement implies the condition of the index.
create index provisioning_target_key_next on provisioning_target (split_part(secret_encrypted, '.', 2));
drop index provisioning_target_key_idx;
alter index provisioning_target_key_next rename to provisioning_target_key_idx;
create index totp_factor_key_next on totp_factor (split_part(secret_encrypted, '.', 2));
drop index totp_factor_key_idx;
alter index totp_factor_key_next rename to totp_factor_key_idx;
create index oauth_signing_key_key_next on oauth_signing_key (split_part(private_key, '.', 2));
drop index oauth_signing_key_key_idx;
alter index oauth_signing_key_key_next rename to oauth_signing_key_key_idx;

-- As before, but the grant and the session of the browser are each looked up by their id alone.
create or replace function provider_token_fault(of_client text, of_grant text, of_token text, at timestamptz) returns text
language plpgsql stable as $$
declare
  asked_client uuid := uuid_of(of_client);
  asked_grant uuid := uuid_of(of_grant);
  token jsonb;
begin
  if not exists (select from oauth_client c where c.document_id = asked_client and c.deleted_at is null) then
    return 'client_unknown';
  elsif (select g.client = asked_client and g.revoked_at is null from oauth_grant g
      where g.document_id = asked_grant) is not true then
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
        and (s.payload ->> 'browserSession' is null or (
          select b.revoked_at is null and b.expires_at > at from session b
          where b.document_id = (s.payload ->> 'browserSession')::uuid))) then
    return 'session_ended';
  end if;
  return null;
end $$;

-- As before, but the subscriptions of a webhook are looked up by its id.
create or replace function account_use(asked uuid)
returns table (used_webhooks integer, used_subscriptions integer, webhooks integer, subscriptions integer,
  published_per_minute integer, replays_per_minute integer, set_at timestamptz)
language plpgsql volatile rows 1 as $$
begin
  return query select
    (select count(*)::int from webhook w where w.account = asked and not w.is_global and w.deleted_at is null),
    (select count(*)::int from webhook w join webhook_event s on s.webhook = w.document_id
      join event e on e.document_id = s.event
      where w.account = asked and not w.is_global and w.deleted_at is null and num_nonnulls(s.deleted_at) = 0
        and e.internal <> 'webhook.test'),
    l.webhooks, l.subscriptions, l.published_per_minute, l.replays_per_minute, l.updated_at
  from (select) one left join account_limit l on l.account = asked;
end $$;

-- As before, but the sessions that were opened from one are looked up by the index of parents for that one, and the tree by
-- its ids: a join may read both indexes through.
create or replace function lock_session_tree(root uuid) returns uuid[] language plpgsql volatile as $$
declare
  locked uuid[] := '{}';
  found_now uuid[];
begin
  loop
    found_now := array(
      with recursive tree as (
        select s.document_id from session s where s.document_id = root
        union
        select child.document_id from tree t cross join lateral (
          select s.document_id from session s where s.parent = t.document_id offset 0) child
      )
      select s.document_id from session s
      where s.document_id = any(array(select t.document_id from tree t)) and s.revoked_at is null
        and s.document_id <> all(locked)
      order by s.document_id for no key update);
    exit when cardinality(found_now) = 0;
    locked := locked || found_now;
  end loop;
  return locked;
end $$;
