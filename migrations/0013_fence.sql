-- additive
-- The fence of accounts: no row is written for an account that is in another database, or being copied to one
-- (docs/decisions/0062-cells.md). Its triggers exist while there are cells.

-- What may be written for an account. `begun`: a publication, a change, a replay, a pull. `ended`: what follows from
-- attempts under way. `taken`: an event from the log. `told`: an event of a resource of home, which the log brings to
-- the database of the account. Rows of a move pass in its own transactions.
create function fence_lets(asked uuid, kind text) returns boolean language plpgsql volatile as $$
declare
  is_home boolean := not exists (select from database_identity where cell is not null);
  state text := coalesce((select f.state from account_fence f where f.account = asked),
    case when is_home then 'open' else 'gone' end);
begin
  return state = 'open'
    or (state = 'held' and kind in ('ended', 'taken'))
    or (is_home and kind = 'taken')
    or (is_home and state = 'gone' and kind = 'told')
    or current_setting('signalbox.moved_account', true) is not distinct from asked::text;
end $$;

-- Whether it may, until the transaction ends: a move waits for the transactions that passed. Who is refused waits for no
-- move, since the first look is before the lock. No holder of the exclusive lock waits for anything.
create function pass_fence(asked uuid, kind text) returns boolean language plpgsql volatile as $$
begin
  if not fence_lets(asked, kind) then
    return false;
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended('signalbox account ' || asked, 0));
  return fence_lets(asked, kind);
end $$;

-- Refuses a statement. The detail has the accounts, comma-separated: `src/postgres/cell/account-fence.ts` reads it.
create function refuse_accounts(refused uuid[]) returns void language plpgsql as $$
begin
  raise exception using errcode = 'SB001', message = 'rows of an account that is not here, or is moving',
    detail = array_to_string(refused, ',');
end $$;

-- Events begin what is written for an account: every route that changes something of it records one, in its transaction.
-- Accounts are locked in the order of their ids.
create function fence_events() returns trigger language plpgsql as $$
declare
  written_for record;
  refused uuid[] := '{}';
begin
  for written_for in
    select w.account, case
      when w.origin is not null then 'taken'
      when w.excluded_webhook is not null then 'ended'
      when split_part(w.event, '.', 1) = any('{webhook,webhook-event,webhook-dispatch,replay-job}'::text[])
        or (select e.source from event e where e.internal = w.event) is not distinct from 'external' then 'begun'
      else 'told' end as kind
    from recorded w where w.account is not null group by 1, 2 order by 1
  loop
    if not pass_fence(written_for.account, written_for.kind) then
      refused := refused || written_for.account;
    end if;
  end loop;
  if refused <> '{}' then
    perform refuse_accounts(refused);
  end if;
  return null;
end $$;

-- The webhook of an account, and what belongs to it.
create function fence_webhook() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and not old.is_global and old.account is not null and not pass_fence(old.account, 'ended') then
    perform refuse_accounts(array[old.account]);
  end if;
  if tg_op <> 'DELETE' and not new.is_global and new.account is not null
    and (tg_op = 'INSERT' or old.account is distinct from new.account or old.is_global)
    and not pass_fence(new.account, 'begun') then
    perform refuse_accounts(array[new.account]);
  end if;
  return null;
end $$;

-- Links are written with an event, or without one while events are switched off.
create function fence_subscription() returns trigger language plpgsql as $$
declare
  owner uuid := case when tg_op = 'DELETE' then old.account else new.account end;
begin
  if owner is not null and not pass_fence(owner, 'ended') then
    perform refuse_accounts(array[owner]);
  end if;
  return null;
end $$;

-- A delivery that is pulled or replayed: the owner of its webhook has it.
create function fence_delivery() returns trigger language plpgsql as $$
declare
  owner uuid := (select w.account from webhook w where w.document_id = new.webhook and not w.is_global);
begin
  if owner is not null and not pass_fence(owner, 'begun') then
    perform refuse_accounts(array[owner]);
  end if;
  return null;
end $$;

-- A bulk replay for some accounts: they are in one database when it is made. It stays there when some of them move, and
-- goes on without their rows (`src/webhook/ledger/replay.store.ts`). Returns the first account that may not be written;
-- null, and the others pass until the transaction ends. A step asks before it reads: rows that rest then, and are open
-- when it ends, would be left out.
create function find_refused_of_job(asked uuid[], kind text) returns uuid language plpgsql volatile as $$
declare
  owner uuid;
begin
  foreach owner in array array(select a from unnest(asked) a order by a) loop
    if kind = 'ended' and cardinality(asked) > 1
      and exists (select from account_fence f where f.account = owner and f.state = 'gone') then
      continue;
    end if;
    if not pass_fence(owner, kind) then
      return owner;
    end if;
  end loop;
  return null;
end $$;

create function fence_replay_job() returns trigger language plpgsql as $$
declare
  refused uuid := find_refused_of_job(new.accounts, case when tg_op = 'INSERT' then 'begun' else 'ended' end);
begin
  if refused is not null then
    perform refuse_accounts(array[refused]);
  end if;
  return null;
end $$;

-- Turns the fence on: each trigger waits for the statements that write its table, and all later ones are checked.
create function open_fence() returns void language plpgsql as $$
begin
  if exists (select from pg_trigger where tgrelid = 'event_occurrence'::regclass and tgname = 'fence') then
    return;
  end if;
  perform set_config('lock_timeout', '5s', true);
  create trigger fence after insert or update or delete on webhook for each row execute function fence_webhook();
  create trigger fence after insert or update or delete on webhook_event
    for each row execute function fence_subscription();
  create trigger fence_replay after insert on webhook_dispatch_open
    for each row when (new.attempt_trigger = 'replay') execute function fence_delivery();
  -- Of a row that waits: the schedule goes on afterwards.
  create trigger fence_hurry after update of attempt_trigger on webhook_dispatch_open
    for each row when (new.attempt_trigger = 'replay' and old.attempt_trigger <> 'replay')
    execute function fence_delivery();
  create trigger fence_pull after update of leased_until on webhook_dispatch_open
    for each row when (old.leased_until is null and new.leased_until is not null) execute function fence_delivery();
  create trigger fence after insert or update on replay_job
    for each row when (new.accounts is not null) execute function fence_replay_job();
  create trigger fence after insert on event_occurrence
    referencing new table as recorded for each statement execute function fence_events();
end $$;

-- Turns it off, when no account is in a cell.
create function close_fence() returns void language plpgsql as $$
begin
  perform set_config('lock_timeout', '5s', true);
  drop trigger if exists fence on event_occurrence;
  drop trigger if exists fence on replay_job;
  drop trigger if exists fence_pull on webhook_dispatch_open;
  drop trigger if exists fence_hurry on webhook_dispatch_open;
  drop trigger if exists fence_replay on webhook_dispatch_open;
  drop trigger if exists fence on webhook_event;
  drop trigger if exists fence on webhook;
end $$;

-- Whether the rows of an account rest: they are being copied, or are what a move has left.
create function is_resting(asked uuid) returns boolean language sql stable as $$
  select exists (select from account_fence f where f.account = asked and f.state in ('closed', 'gone'))
$$;
