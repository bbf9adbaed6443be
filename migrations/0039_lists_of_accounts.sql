-- additive
-- Lists of the accounts of a caller: each account is read by itself, in the order of the list and to the limit of a page. The
-- indexes end with the instant: with the id behind it PostgreSQL may take them for the primary key.

create index event_occurrence_account_idx on event_occurrence (account, created_at) where account is not null;
create index webhook_dispatch_open_account_idx on webhook_dispatch_open (account, created_at) where account is not null;
-- The list alone states its condition in this form: the router must not take this index for that of event types and accounts.
create index webhook_event_account_idx on webhook_event (account, created_at)
  where num_nonnulls(deleted_at) = 0 and account is not null;
create index account_member_account_idx on account_member (account, created_at);
-- A bulk replay for some accounts is found by the first of them.
create index replay_job_account_idx on replay_job ((accounts[1]), created_at) where accounts is not null;

create index webhook_account_next on webhook (account, created_at) where account is not null;
drop index webhook_account_idx;
alter index webhook_account_next rename to webhook_account_idx;
create index webhook_owner_next on webhook (account, created_at)
  where not is_global and deleted_at is null and account is not null;
drop index webhook_owner_idx;
alter index webhook_owner_next rename to webhook_owner_idx;

-- The failures of an account on its dashboard: of deliveries that succeed it holds nothing.
create index webhook_dispatch_ended_account_failed_idx on webhook_dispatch_ended (account, ended_at)
  where status in ('exhausted', 'failed') and account is not null;
