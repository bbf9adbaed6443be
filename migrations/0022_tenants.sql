-- additive
-- What tenants do by themselves: bulk replays of their accounts, API keys of one account, limits of each account.

-- The accounts to whose ledger rows a bulk replay is limited; null for one over all accounts.
alter table replay_job add column accounts uuid[];

-- A key with an account holds its permissions in that account only.
alter table api_key add column account uuid references account (document_id);
create index api_key_account_idx on api_key (account) where account is not null and revoked_at is null;

create index webhook_owner_idx on webhook (account) where not is_global and deleted_at is null;

-- Limits of one account that differ from those of the configuration, which holds where a column is null.
create table account_limit (
  account uuid primary key references account (document_id) on delete cascade,
  webhooks integer check (webhooks >= 0),
  subscriptions integer check (subscriptions >= 0),
  published_per_minute integer check (published_per_minute >= 0),
  replays_per_minute integer check (replays_per_minute >= 0),
  updated_by uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

-- Processes hold the limits of an account in memory, by the note 'l:<account>'.
create function note_account_limit_change() returns trigger language plpgsql as $$
begin
  perform note_change('l:' || case when tg_op = 'DELETE' then old.account else new.account end);
  return null;
end $$;
create trigger note_change after insert or update or delete on account_limit
  for each row execute function note_account_limit_change();

-- How many webhooks an account has, how many subscriptions beside those to webhook.test, which every webhook has, and its
-- own limits with the time of their last change.
create function account_use(asked uuid)
returns table (used_webhooks integer, used_subscriptions integer, webhooks integer, subscriptions integer,
  published_per_minute integer, replays_per_minute integer, set_at timestamptz)
language plpgsql volatile rows 1 as $$
begin
  return query select
    (select count(*)::int from webhook w where w.account = asked and not w.is_global and w.deleted_at is null),
    (select count(*)::int from webhook w join webhook_event s on s.webhook = w.document_id
      join event e on e.document_id = s.event
      where w.account = asked and not w.is_global and w.deleted_at is null and s.deleted_at is null
        and e.internal <> 'webhook.test'),
    l.webhooks, l.subscriptions, l.published_per_minute, l.replays_per_minute, l.updated_at
  from (select) one left join account_limit l on l.account = asked;
end $$;
