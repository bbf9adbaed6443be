-- additive
-- An event for many webhooks is routed in parts: rows come and go, few at a time.

create table webhook_fan_out (
  event_id uuid primary key,
  -- The webhooks are taken in the order of their ids: those up to this one are done; null before the first part.
  reached uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0);

-- The webhooks of an event type and an account in the order of their ids, so that a part reads only its own.
create index webhook_event_fan_out_idx on webhook_event (event, account, webhook) where deleted_at is null;
drop index webhook_event_route_idx;
