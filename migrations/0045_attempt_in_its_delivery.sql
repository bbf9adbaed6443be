-- additive
-- The attempt that ends a delivery is an entry of the log in the delivery's own row: number, trigger, start, duration, status
-- and failure class are there already. The other attempts stay in webhook_attempt, as those from before do. The columns of
-- fixed width come first, so that none is padded.
alter table webhook_dispatch_ended
  add column first_byte_ms real,
  add column total_ms real,
  add column dns_ms real,
  add column connect_ms real,
  add column tls_ms real,
  add column worker text,
  add column response_excerpt text,
  add column response_headers jsonb;

-- Of an ended delivery no trigger stands for the schedule, and no time of delivery for the end of a success. Both releases read
-- the view below, which names a trigger for every row.
-- squawk-ignore ban-drop-not-null
alter table webhook_dispatch_ended alter column attempt_trigger drop not null, alter column attempt_trigger drop default;
create or replace view webhook_dispatch as
select document_id, webhook, event_id, event, account, status, attempts, null::timestamptz(3) as next_attempt_at,
  last_attempt_at, last_status_code, last_error, last_duration_ms,
  coalesce(delivered_at, case when status = 'success' then ended_at end)::timestamptz(3) as delivered_at, ended_at, is_test,
  coalesce(attempt_trigger, 'schedule') as attempt_trigger, replay_job, null::text as lease_owner, fence, created_at,
  updated_at
from webhook_dispatch_ended
union all
select document_id, webhook, event_id, event, account, status, attempts, next_attempt_at, last_attempt_at, last_status_code,
  last_error, last_duration_ms, delivered_at, null::timestamptz(3) as ended_at, is_test, attempt_trigger, replay_job,
  lease_owner, fence, created_at, updated_at
from webhook_dispatch_open;

create view webhook_attempt_log as
select dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code, error_class, response_excerpt,
  response_headers, timings
from webhook_attempt
union all
select document_id, attempts, coalesce(attempt_trigger, 'schedule'), worker, last_attempt_at, last_duration_ms, last_status_code, last_error,
  response_excerpt, response_headers,
  case when total_ms is not null then
    jsonb_build_object('dnsMs', dns_ms, 'connectMs', connect_ms, 'tlsMs', tls_ms, 'firstByteMs', first_byte_ms,
      'totalMs', total_ms)
  end
from webhook_dispatch_ended
where worker is not null;
