-- additive
-- Whether a row was waiting on its schedule when a replay made it due: the schedule goes on after that attempt. A process of
-- the release before does not look at it, and ends the row as it always did.
alter table webhook_dispatch_open add column keeps_schedule boolean not null default false;
