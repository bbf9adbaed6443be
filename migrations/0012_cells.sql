-- additive
-- Cells: databases beside home that hold the webhooks and the ledger of some accounts (docs/decisions/0062-cells.md).
-- Home is the database of DATABASE_URL: identity, accounts, event types, provisioning, and the directory. A service
-- without cells leaves these tables empty.

-- What this database is: one row from the first `signalbox cell add` on. `home` is the same in home and in its cells, so
-- that no database is taken for another one's; `cell` is null in home.
create table database_identity (
  is_only boolean primary key default true check (is_only),
  home uuid not null,
  cell text
);

-- The cells, in home.
create table cell (
  name text primary key check (name ~ '^[a-z][a-z0-9-]{0,30}$'),
  -- Sealed: it has a password.
  database_url_encrypted text not null,
  -- `joining`: the reference rows are being copied. `draining`: no account moves there any more.
  state text not null check (state in ('joining', 'active', 'draining')),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index cell_key_idx on cell (split_part(database_url_encrypted, '.', 2)) where database_url_encrypted is not null;

-- The directory, in home: where the webhooks and the ledger of an account are. No row: home, version 0. Each move
-- raises the version.
create table account_cell (
  account uuid primary key,
  -- Null: home.
  cell text references cell (name),
  version bigint not null
);
create index account_cell_cell_idx on account_cell (cell) where cell is not null;

create function invalidate_account_cell() returns trigger language plpgsql as $$
begin
  perform invalidate('a:' || case when tg_op = 'DELETE' then old.account else new.account end);
  return null;
end $$;
create trigger invalidate after insert or update or delete on account_cell
  for each row execute function invalidate_account_cell();

-- The fence of accounts, in every database: what may be written for an account here. No row: open in home, gone in a
-- cell. Read under the shared advisory lock of the account, closed under the exclusive one.
create table account_fence (
  account uuid primary key,
  version bigint not null,
  -- `held`: it is about to move, and only what is under way ends. `closed`: it is being copied, and nothing changes.
  -- `gone`: it is in another database.
  state text not null check (state in ('open', 'held', 'closed', 'gone')),
  -- Of the process that runs a move of the account: an earlier one is refused.
  epoch bigint not null default 0
);

-- Raised by each process that takes a move over: the ones before change nothing any more.
create sequence account_move_epoch as bigint cache 1;

-- Moves that have not ended, in home. Each step is repeatable; a move that stopped goes on or back.
create table account_move (
  account uuid primary key,
  -- Null: home.
  source text references cell (name),
  target text references cell (name),
  -- The version of the directory after the move.
  version bigint not null,
  step text not null check (step in ('hold', 'drain', 'copy', 'switch', 'release', 'back')),
  -- What is copied of the ledger: the last key of each part that is not complete, and the last ordinal before the copy.
  copied jsonb not null default '{}',
  reason text,
  -- The process that runs the move, until its lease ends by the clock of home.
  runner text,
  lease_until timestamptz(3),
  -- Of its runner.
  epoch bigint not null default 0,
  -- When it goes back if it still waits for what is under way.
  drain_until timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  check (source is distinct from target)
);

-- The position of this database in the event log: what it has taken in of the events that other databases recorded. No
-- row: it takes in nothing.
create table log_intake (
  name text primary key check (name = 'events'),
  -- The last message that was dealt with; `incarnation` is null before the first one.
  incarnation text,
  sequence bigint not null default 0,
  -- When the log stored it: from here on the log is read again when it cannot go on from the position.
  stored_at timestamptz(3),
  -- What identifies that message: another one there means that the log lost its end. Null when it is not known.
  fingerprint text,
  -- Read the log from this instant on, and not from the position: at the beginning, after a fault, and for a move.
  read_since timestamptz(3),
  -- The process that takes in, until its lease ends by the clock of this database.
  runner text,
  lease_until timestamptz(3),
  taken_at timestamptz(3) not null,
  -- The last fault that was found in the log, and when.
  fault text check (fault in ('replaced', 'ahead', 'expired')),
  fault_at timestamptz(3),
  -- From here on events may be missing: the log removed them before they were taken in.
  missing_since timestamptz(3)
);

-- The database that recorded an event that was taken in from the log: `home`, or the name of a cell; null for its own. The
-- outbox has own events only.
alter table event_occurrence add column origin text;

-- The webhooks of a deleted account become inactive where they are, as `deactivateAccountWebhooks` makes them in home.
create function deactivate_webhooks_of_account() returns trigger language plpgsql as $$
begin
  update webhook set is_actived = false, disabled_at = coalesce(disabled_at, new.deleted_at),
    disabled_reason = 'account-deleted', updated_at = new.deleted_at, updated_by = new.updated_by
  where account = new.document_id and deleted_at is null;
  return null;
end $$;

-- A replicated row takes the place of one that is there: after a slot of home was lost, all rows are copied again.
create function replace_reference_row() returns trigger language plpgsql as $$
begin
  execute format('delete from %I where %I = ($1).%I', tg_table_name, tg_argv[0], tg_argv[0]) using new;
  return new;
end $$;

-- Makes a database a cell of this name: what fires for the rows that home replicates. Ordinary triggers do not.
create function become_cell(of_home uuid, of_name text) returns void language plpgsql as $$
declare
  fired regprocedure;
begin
  insert into database_identity (home, cell) values (of_home, of_name) on conflict (is_only) do nothing;
  if not exists (select from database_identity where home = of_home and cell = of_name) then
    raise exception 'this database belongs to another service or cell' using errcode = 'SB002';
  end if;
  -- Replication fires triggers of rows alone.
  create or replace trigger invalidate_row after insert or update or delete on event
    for each row execute function invalidate_read_subscriptions();
  create or replace trigger invalidate_row after update of deleted_at or delete on account
    for each row execute function invalidate_all();
  alter table event enable replica trigger invalidate_row;
  alter table account enable replica trigger invalidate_row;
  alter table account_limit enable always trigger invalidate;
  create or replace trigger deactivate_webhooks after update of deleted_at on account
    for each row when (old.deleted_at is null and new.deleted_at is not null)
    execute function deactivate_webhooks_of_account();
  alter table account enable always trigger deactivate_webhooks;
  create or replace trigger replace_row before insert on event
    for each row execute function replace_reference_row('document_id');
  create or replace trigger replace_row before insert on account
    for each row execute function replace_reference_row('document_id');
  create or replace trigger replace_row before insert on account_limit
    for each row execute function replace_reference_row('account');
  -- A worker of replication finds names of `pg_catalog` alone.
  foreach fired in array array['replace_reference_row()', 'deactivate_webhooks_of_account()', 'invalidate_all()',
    'invalidate_read_subscriptions()', 'invalidate_account_limit()', 'count_webhook_change()']::regprocedure[] loop
    execute format('alter function %s set search_path = %I, pg_temp', fired, current_schema());
  end loop;
  -- They fire for replicated rows alone.
  alter table event enable replica trigger replace_row;
  alter table account enable replica trigger replace_row;
  alter table account_limit enable replica trigger replace_row;
  -- What follows from `deactivate_webhooks`.
  alter table webhook enable always trigger invalidate;
  alter table webhook enable always trigger webhook_count_update;
  -- Users are in home alone.
  alter table account drop constraint if exists account_created_by_fkey, drop constraint if exists account_updated_by_fkey;
end $$;

-- Reference rows: what statements of a cell read of home, by logical replication, with the same ids. In home:
create function publish_reference() returns void language plpgsql as $$
begin
  if not exists (select from pg_publication where pubname = 'signalbox_reference') then
    create publication signalbox_reference for table event, account, account_limit;
  end if;
end $$;

-- The slot of a cell, in a transaction of its own. From PostgreSQL 17 on a standby that is promoted has it too.
create function open_reference_slot(slot text) returns void language plpgsql as $$
begin
  if exists (select from pg_replication_slots where slot_name = slot and wal_status is distinct from 'lost') then
    return;
  end if;
  perform pg_drop_replication_slot(s.slot_name) from pg_replication_slots s where s.slot_name = slot;
  if current_setting('server_version_num')::int >= 170000 then
    execute format('select pg_create_logical_replication_slot(%L, %L, failover => true)', slot, 'pgoutput');
  else
    perform pg_create_logical_replication_slot(slot, 'pgoutput');
  end if;
end $$;

create function close_reference_slot(slot text) returns void language plpgsql as $$
begin
  for attempt in reverse 100..0 loop
    begin
      perform pg_drop_replication_slot(s.slot_name) from pg_replication_slots s where s.slot_name = slot;
      return;
    exception when object_in_use then
      if attempt = 0 then
        raise;
      end if;
    end;
    -- A subscription that was not ended holds it, and comes back within milliseconds.
    perform pg_terminate_backend(s.active_pid) from pg_replication_slots s
    where s.slot_name = slot and s.active_pid is not null;
    perform pg_sleep(0.005 * (1 + attempt % 4));
  end loop;
end $$;

-- In a cell: `source` is the connection string of home.
create function subscribe_reference(source text, slot text) returns void language plpgsql as $$
begin
  if exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid and d.datname = current_database()
    where s.subname = 'signalbox_reference') then
    execute format('alter subscription signalbox_reference connection %L', source);
    alter subscription signalbox_reference enable;
  else
    -- Limits that home removed meanwhile would stay.
    delete from account_limit;
    execute format('create subscription signalbox_reference connection %L publication signalbox_reference
      with (create_slot = false, slot_name = %L)', source, slot);
  end if;
end $$;

create function unsubscribe_reference() returns void language plpgsql as $$
begin
  if exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid and d.datname = current_database()
    where s.subname = 'signalbox_reference') then
    alter subscription signalbox_reference disable;
    alter subscription signalbox_reference set (slot_name = none);
    drop subscription signalbox_reference;
  end if;
end $$;

-- The position of home's log of changes up to which this cell has the reference rows; null before the first answer. A
-- keepalive of home comes after all that it sent before, and `latest_end_lsn` moves with it alone.
create function reference_position() returns pg_lsn language plpgsql stable as $$
declare
  known record;
begin
  select s.oid, p.latest_end_lsn into known
  from pg_subscription s join pg_database d on d.oid = s.subdbid and d.datname = current_database()
  left join pg_stat_subscription p on p.subid = s.oid and p.relid is null
  where s.subname = 'signalbox_reference';
  -- The position at which the worker ended, while home is away: for users who may ask.
  if known.oid is not null and has_function_privilege('pg_replication_origin_progress(text, boolean)', 'execute') then
    return greatest(known.latest_end_lsn, pg_replication_origin_progress('pg_' || known.oid, false));
  end if;
  return known.latest_end_lsn;
end $$;
