-- additive
-- What processes compare with one another is not judged by the clocks of their machines.

-- The order in which webhooks and events were recorded: an event goes to the webhooks that were there before it. It is
-- counted, not timed, so that neither a wrong clock of a machine nor a step of the database's clock can change it. `cache 1`
-- keeps it one order for all connections.
create sequence recorded_ordinal as bigint cache 1;

-- Those that are there come before every new event.
alter table webhook add column ordinal bigint not null default 0;
alter table webhook alter column ordinal set default nextval('recorded_ordinal');

-- Null in events of the release before; those are judged by their times.
alter table event_occurrence add column ordinal bigint;
alter table event_occurrence alter column ordinal set default nextval('recorded_ordinal');

-- Processes whose machine is more than two seconds off the database's clock, each by its own measurement.
create table process_skew (
  process text primary key,
  -- Milliseconds that its machine is ahead of the database; negative: behind.
  skew_ms bigint not null,
  seen_at timestamptz not null
);
create index process_skew_seen_idx on process_skew (seen_at);
