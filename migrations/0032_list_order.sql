-- additive
-- Lists for administrators are read in the order of these indexes: without one, each page sorts every row of its table. They
-- end with the instant: with the id behind it PostgreSQL may take them for the primary key.

create index user_created_idx on "user" (created_at);
create index account_created_idx on account (created_at);
create index api_key_created_idx on api_key (created_at);
create index session_created_idx on session (created_at);
create index oauth_client_created_idx on oauth_client (created_at);
create index webhook_event_created_idx on webhook_event (created_at);
