-- additive
-- Whether a delivery was waiting on its schedule when a replay made it due: the schedule goes on after that attempt. A process
-- of the release before does not look at it, and ends the delivery as it always did.
alter table provisioning_delivery add column keeps_schedule boolean not null default false;
