-- not additive: the totals of deliveries move to another table
-- How many deliveries of each minute are in each status now, and how often one came into it. The dashboard adds up a day of
-- it, at any size of the ledger; the metric adds up all of it. Processes count on shards, so that they seldom wait for each
-- other, and what a shard took off may be what another one added.
create table webhook_delivery_minute (
  -- Of the creation of the deliveries; 1970 holds what is older than the dashboard looks back.
  minute timestamptz(3) not null,
  status text not null,
  shard integer not null,
  -- Only grows: the metric.
  came bigint not null,
  -- The rows of the ledger.
  deliveries bigint not null,
  primary key (minute, status, shard)
);
insert into webhook_delivery_minute select 'epoch', status, shard, deliveries, 0 from webhook_delivery_total;
drop table webhook_delivery_total;
insert into webhook_delivery_minute
  select date_trunc('minute', created_at), status, 0, 0, count(*) from webhook_dispatch
  where created_at > statement_timestamp() - interval '25 hours' group by 1, 2;

-- The most recent failures, for the dashboard.
create index webhook_dispatch_ended_failed_idx on webhook_dispatch_ended (ended_at, document_id)
  where status in ('exhausted', 'failed');
