-- additive
-- Look-ups by `uid` that read one row, whatever the statistics say.

-- All conditions in one index: with the first alone, PostgreSQL may read the index of expiries beside it, which holds
-- every token that lives, or that of the models.
create index oauth_state_uid_model_idx on oauth_state (uid, model, expires_at) where uid is not null;
drop index oauth_state_uid_idx;
