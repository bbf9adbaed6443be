-- additive
-- The audit entry of a publication is its event's row, of several events the first one's: the entry's id is the event's.
-- `publish_request` is the id of the request, and set where there is an entry. Empty details mean one event. Entries from
-- before, and those of events that retention removed before their entries, are in audit_log.
alter table event_occurrence
  add column published_by uuid,
  add column publish_session uuid,
  add column publish_api_key uuid,
  add column publish_request uuid,
  add column publish_client text,
  add column publish_address text,
  add column publish_detail jsonb;
create index event_occurrence_published_idx on event_occurrence (created_at) where publish_request is not null;
create index event_occurrence_publisher_idx on event_occurrence (published_by, created_at)
  where published_by is not null and publish_request is not null;

create view audit_publication as
select document_id, 'event.publish'::text as action, 'success'::text as outcome, published_by as "user",
  publish_session as session, publish_api_key as api_key, null::uuid as account, null::uuid as target,
  publish_address as address, publish_request::text as request_id, coalesce(publish_detail, '{"events": 1}') as detail,
  created_at, publish_client as client_id, 1 as count
from event_occurrence
where publish_request is not null;

create view audit_entry as
select document_id, action, outcome, "user", session, api_key, account, target, address, request_id, detail, created_at,
  client_id, count
from audit_log
union all
select document_id, action, outcome, "user", session, api_key, account, target, address, request_id, detail, created_at,
  client_id, count
from audit_publication;
