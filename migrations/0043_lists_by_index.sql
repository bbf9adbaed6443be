-- additive
-- Sorts and filters of lists for callers who reach all rows. A sort without an index reads and sorts the whole table for each
-- page. They end with the value: rows of one value are sorted by their ids. They hold deleted rows too: while PostgreSQL knows
-- nothing of a table, it prefers an index of the living rows to that of a key. What each delivery, refresh or change of a
-- contract writes has none, for each write would cost more.

create index user_email_idx on "user" (email);
create index user_updated_idx on "user" (updated_at);
create index user_inactive_idx on "user" (created_at) where not is_actived;
create index account_name_idx on account (name);
create index account_updated_idx on account (updated_at);
create index account_member_updated_idx on account_member (account, updated_at);
create index api_key_name_idx on api_key (name);
create index api_key_updated_idx on api_key (updated_at);
create index oauth_client_name_idx on oauth_client (name);
create index oauth_client_updated_idx on oauth_client (updated_at);
create index oauth_client_first_party_idx on oauth_client (created_at) where first_party;
create index oauth_client_type_idx on oauth_client (type, created_at);
create index oauth_client_application_type_idx on oauth_client (application_type, created_at);
create index oauth_client_registration_idx on oauth_client (registration, created_at);
create index oauth_grant_updated_idx on oauth_grant (updated_at);
create index webhook_url_idx on webhook (url);
create index webhook_global_idx on webhook (created_at) where is_global;
create index webhook_inactive_idx on webhook (created_at) where not is_actived;
create index webhook_disabled_idx on webhook (disabled_at) where disabled_at is not null;
create index webhook_disabled_reason_idx on webhook (disabled_reason, created_at) where disabled_reason is not null;
create index webhook_event_updated_idx on webhook_event (updated_at);

-- `like` finds parts of texts by these indexes (docs/contract/api.md#like). Where the server has no pg_trgm, or does not let
-- this role or this search path use it, the lists are read through: correct, and ended after 2 s.
do $$
begin
  create extension if not exists pg_trgm;
  create index user_email_parts_idx on "user" using gin (email gin_trgm_ops);
  create index user_name_parts_idx on "user" using gin (name gin_trgm_ops);
  create index account_name_parts_idx on account using gin (name gin_trgm_ops);
  create index api_key_name_parts_idx on api_key using gin (name gin_trgm_ops);
  create index oauth_client_name_parts_idx on oauth_client using gin (name gin_trgm_ops);
  create index webhook_url_parts_idx on webhook using gin (url gin_trgm_ops);
  create index webhook_name_parts_idx on webhook using gin (name gin_trgm_ops);
  create index webhook_description_parts_idx on webhook using gin (description gin_trgm_ops);
exception when feature_not_supported or insufficient_privilege or undefined_file or undefined_object then
  raise notice 'no index for like: %', sqlerrm;
end $$;
