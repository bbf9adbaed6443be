-- additive
-- `like` finds parts of texts by these indexes (docs/contract/api.md#like). Where the server has no pg_trgm, or does
-- not let this role or this search path use it, the lists are scanned whole: correct, and ended after 2 s.
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
