-- additive
-- The embedded realtime server. Several processes serve the same applications; they pass each other events and counts of
-- subscribers by notifications, which are limited to 8,000 bytes, and by these tables. Nothing here outlives the processes,
-- so neither table is logged: a crash of the server empties both, and the processes write them again.

-- The processes that serve. A process holds an advisory lock of its id for as long as its listening connection lives.
create unlogged table realtime_process (
  id uuid primary key,
  seen_at timestamptz not null
);

-- What a process told the others in the last minute, in the order of its numbers. Small messages stand in the notification
-- too; the table has the large ones, and those that a process missed while its listening connection was lost.
create unlogged table realtime_relay (
  process uuid not null,
  number bigint not null,
  payload text not null,
  created_at timestamptz not null,
  primary key (process, number)
);

create index realtime_relay_created_at on realtime_relay (created_at);
