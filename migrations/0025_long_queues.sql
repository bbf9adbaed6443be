-- additive

-- Fan-out -------------------------------------------------------------------------------------------------------------

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

-- Realtime messages ---------------------------------------------------------------------------------------------------

-- The messages of an account that nobody has claimed, in the order of their events: a claim reads only those that it may
-- take, however many wait after an outage of the provider. The text, because no index but the primary key may hold the id.
create index realtime_message_open_order_idx on realtime_message_open (account, ((document_id::text) collate "C"))
  where lease_owner is null;

-- Ledger --------------------------------------------------------------------------------------------------------------

-- The index of failures that is sorted by id too does the same.
drop index webhook_dispatch_ended_idx;
