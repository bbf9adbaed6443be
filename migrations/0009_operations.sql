-- additive
-- The audit log, and what an operator is alerted of.

-- Audit log -----------------------------------------------------------------------------------------------------------

alter table audit_log
  -- Which app acted.
  add column client_id text,
  -- The portal session that acted, and the name that the platform gave its user.
  add column portal_session uuid,
  add column external_user text,
  -- Equal refusals of a minute are one entry with a count (docs/contract/api.md#audit-entries). The key is a hash of what
  -- makes them equal, and of the minute.
  add column count integer not null default 1,
  add column equal_key bytea;
create unique index audit_log_equal_key on audit_log (equal_key) where equal_key is not null;

drop index audit_log_created_idx, audit_log_target_idx, audit_log_user_idx;
create index audit_log_created_idx on audit_log (created_at);
-- An entry without target or user is found by neither.
create index audit_log_target_idx on audit_log (target, created_at) where target is not null;
create index audit_log_user_idx on audit_log ("user", created_at) where "user" is not null;
-- The sign-ins of one user, apart from its other actions.
create index audit_log_sign_in_idx on audit_log ("user", created_at)
  where "user" is not null and starts_with(action, 'login.');
-- The decisions of users about one app.
create index audit_log_decision_idx on audit_log ((detail ->> 'client'), created_at)
  where detail ->> 'client' is not null and action = 'oauth-decision.create' and outcome = 'success';
-- Sign-ins with providers and exchanges of handshakes, counted for the operator.
create index audit_log_entrance_idx on audit_log (action, created_at)
  where starts_with(action, 'login.oauth') or action = 'sso.exchange';
create index audit_log_portal_session_idx on audit_log (portal_session, created_at) where portal_session is not null;

create view audit_publication as
select document_id, 'event.publish'::text as action, 'success'::text as outcome, published_by as "user",
  publish_session as session, publish_api_key as api_key, null::uuid as account, null::uuid as target,
  publish_address as address, publish_request::text as request_id, coalesce(publish_detail, '{"events": 1}') as detail,
  created_at, publish_client as client_id, 1 as count, null::uuid as portal_session, null::text as external_user
from event_occurrence
where publish_request is not null;

create view audit_entry as
select document_id, action, outcome, "user", session, api_key, account, target, address, request_id, detail, created_at,
  client_id, count, portal_session, external_user
from audit_log
union all
select document_id, action, outcome, "user", session, api_key, account, target, address, request_id, detail, created_at,
  client_id, count, portal_session, external_user
from audit_publication;

-- Activity ------------------------------------------------------------------------------------------------------------

-- Sign-ins and realtime messages by when they ended: sums of minutes, hours, 6 hours and days, of what ended two minutes ago
-- and earlier. They are counted from the rows of the audit log and the ledger, each once. Realtime connections, which are
-- no rows, are read once a minute: the sum of the readings, their number, and the highest (peak, which is no sum).
create table activity_sum (
  kind text not null check (kind in ('sign-in', 'realtime', 'connection')),
  width text not null check (width in ('minute', 'hour', 'quarter', 'day')),
  at timestamptz(3) not null,
  measure text not null,
  count bigint not null,
  primary key (kind, width, at, measure)
);
create index activity_sum_old_idx on activity_sum (width, at);

-- The whole minute before which everything of a kind is in the sums. One process at a time counts on from it.
create table activity_counted (
  kind text primary key,
  until timestamptz(3) not null
);

-- Alerts --------------------------------------------------------------------------------------------------------------

-- Incidents for the operator, from beginning to end; each is posted once.
create table alert_incident (
  document_id uuid primary key,
  incident text not null,
  -- Subject of the incident, such as the id of a target.
  subject text not null,
  summary text not null,
  url text,
  since timestamptz(3) not null,
  resolved_at timestamptz(3),
  -- Times of the posts of its beginning and its end.
  firing_posted_at timestamptz(3),
  resolved_posted_at timestamptz(3),
  -- When the next POST is due, or is tried by another process.
  due_at timestamptz(3) not null,
  attempts integer not null default 0
);
create unique index alert_incident_firing_key on alert_incident (incident, subject) where resolved_at is null;
create index alert_incident_due_idx on alert_incident (due_at)
  where firing_posted_at is null or (resolved_at is not null and resolved_posted_at is null);
