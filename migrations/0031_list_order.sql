-- additive
-- Lists for administrators are read in the order of these indexes: without one, each page sorts every row of its table.

create index user_created_idx on "user" (created_at, document_id);
create index account_created_idx on account (created_at, document_id);
create index api_key_created_idx on api_key (created_at, document_id);
create index session_created_idx on session (created_at, document_id);
create index oauth_client_created_idx on oauth_client (created_at, document_id);
create index webhook_event_created_idx on webhook_event (created_at, document_id);
