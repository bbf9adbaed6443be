-- not additive: API keys beyond the year 9999 are refused
-- Counts that cost the same whatever the ledger holds, and instants that four digits of a year can write.

-- Exhausted deliveries of the last 24 hours, without the failed ones beside them in webhook_dispatch_ended_idx.
create index webhook_dispatch_exhausted_idx on webhook_dispatch (ended_at) where status = 'exhausted';

-- Webhooks that the service disabled itself.
create index webhook_auto_disabled_idx on webhook (document_id)
  where deleted_at is null and not is_actived and disabled_reason = 'consecutive-failures';

-- A key that ends after the year 9999 in UTC broke every list that shows it. A later end is no end that anybody meets.
update api_key set expires_at = '9999-12-31T23:59:59.999Z' where expires_at > '9999-12-31T23:59:59.999Z';
alter table api_key add constraint api_key_expires_range
  check (expires_at between '1970-01-01T00:00:00Z' and '9999-12-31T23:59:59.999Z');
