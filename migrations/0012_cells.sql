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
  database_url bytea not null,
  -- `joining`: the reference rows are being copied. `draining`: no account moves there any more.
  state text not null check (state in ('joining', 'active', 'draining')),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

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

-- The fence of accounts, in every database: a row is written for an account only while it is open. No row: open in home,
-- closed in a cell. Read under the shared advisory lock of the account, changed under the exclusive one.
create table account_fence (
  account uuid primary key,
  version bigint not null,
  state text not null check (state in ('open', 'held', 'gone'))
);

-- Moves that have not ended, in home. Each step is repeatable; a move that stopped goes on or back.
create table account_move (
  account uuid primary key,
  -- Null: home.
  source text references cell (name),
  target text references cell (name),
  -- The version of the directory after the move.
  version bigint not null,
  step text not null check (step in ('hold', 'drain', 'copy', 'switch', 'release', 'back')),
  -- What is copied: the table, and its last key.
  copied jsonb,
  reason text,
  -- The process that runs the move, until its lease ends by the clock of home.
  runner text,
  lease_until timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  check (source is distinct from target)
);

-- The position of this database in the event log: what it has taken in of the events that other databases recorded.
create table log_intake (
  name text primary key check (name = 'events'),
  incarnation text not null,
  sequence bigint not null,
  -- The process that takes in, until its lease ends by the clock of this database.
  runner text,
  lease_until timestamptz(3),
  taken_at timestamptz(3) not null
);

-- The database that recorded an event that was taken in from the log; null for its own. The outbox has own events only.
alter table event_occurrence add column origin text;
