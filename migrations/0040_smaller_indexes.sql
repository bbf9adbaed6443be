-- additive
-- What the indexes of a published event take. Those of lists end with the instant: PostgreSQL keeps equal instants once, and
-- sorts the few rows of one instant by their ids. They ascend: rows come in the order of time, and fill the pages of an
-- ascending index. An entry without target or user is found by neither.

create index audit_log_created_next on audit_log (created_at);
drop index audit_log_created_idx;
alter index audit_log_created_next rename to audit_log_created_idx;

create index audit_log_target_next on audit_log (target, created_at) where target is not null;
drop index audit_log_target_idx;
alter index audit_log_target_next rename to audit_log_target_idx;

create index audit_log_user_next on audit_log ("user", created_at) where "user" is not null;
drop index audit_log_user_idx;
alter index audit_log_user_next rename to audit_log_user_idx;

create index webhook_dispatch_ended_account_next on webhook_dispatch_ended (account, created_at) where account is not null;
drop index webhook_dispatch_ended_account_idx;
alter index webhook_dispatch_ended_account_next rename to webhook_dispatch_ended_account_idx;

create index webhook_dispatch_ended_created_next on webhook_dispatch_ended (created_at);
drop index webhook_dispatch_ended_created_idx;
alter index webhook_dispatch_ended_created_next rename to webhook_dispatch_ended_created_idx;

create index webhook_dispatch_ended_webhook_next on webhook_dispatch_ended (webhook, created_at);
drop index webhook_dispatch_ended_webhook_idx;
alter index webhook_dispatch_ended_webhook_next rename to webhook_dispatch_ended_webhook_idx;

create index event_occurrence_resource_next on event_occurrence (resource_id, created_at) where resource_id is not null;
drop index event_occurrence_resource_idx;
alter index event_occurrence_resource_next rename to event_occurrence_resource_idx;
