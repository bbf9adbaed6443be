-- additive
-- The logo of an app, fetched once when an administrator names it, and when a grant was used last. The instant stands apart
-- from the grant: a token is issued without a lock of the grant.

alter table oauth_client add column logo_uri text, add column logo_hash text;

create table oauth_client_logo (
  client uuid primary key references oauth_client (document_id) on delete cascade,
  media_type text not null,
  body bytea not null check (length(body) <= 131072)
);

create table oauth_grant_use (
  grant_id uuid primary key references oauth_grant (document_id) on delete cascade,
  used_at timestamptz(3) not null
);
