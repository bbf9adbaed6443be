-- additive
-- What was recorded of a webhook before, behind its lock, of deliveries that ended after those that are recorded now
-- (docs/contract/delivery.md#failure-count): the last success after `failed_at`, among the last deliveries, and the failures
-- after `succeeded_at` that counted. `leaving` are the deliveries that are recorded now. The last deliveries are read in the
-- order of their index, not all of them to be sorted; failures by when they ended, not all of the webhook.
create function later_ends(of_webhook uuid, failed_at timestamptz, succeeded_at timestamptz, leaving uuid[],
  last_deliveries integer, out last_success_at timestamptz, out failures_at timestamptz[])
language plpgsql volatile set enable_bitmapscan = off set enable_sort = off as $$
begin
  if failed_at is not null then
    select max(l.ended_at) into last_success_at from (
      select d.status, d.ended_at from webhook_dispatch_ended d
      where d.webhook = of_webhook and not d.document_id = any(leaving)
      order by d.created_at desc limit last_deliveries
    ) l where l.status = 'success' and l.ended_at > failed_at;
  end if;
  failures_at := array(
    select d.ended_at from webhook_dispatch_ended d
    where d.status in ('exhausted', 'failed') and d.ended_at > succeeded_at and (d.webhook = of_webhook) is true
      and coalesce(d.attempt_trigger, 'schedule') = 'schedule' and not d.is_test and not d.document_id = any(leaving));
end $$;

-- The grant is locked before the client: the order in which a grant is recorded at the engine and then ended.
create or replace function end_engine_grant(holder uuid, ended uuid, at timestamptz) returns void
language plpgsql volatile as $$
begin
  perform from engine_grant g where g."user" = holder and g.client = ended and g.revoked_at is null for no key update;
  perform pg_advisory_xact_lock(hashtextextended('oauth client ' || ended, 0));
  update engine_grant set revoked_at = at, updated_at = at, is_ended_there = false
    where "user" = holder and client = ended and revoked_at is null;
  update session set revoked_at = at, updated_at = at
  where document_id in (
    select s.document_id from session s
    where s."user" = holder and s.client_id = ended::text and s.revoked_at is null
    order by s.document_id for no key update);
end $$;
