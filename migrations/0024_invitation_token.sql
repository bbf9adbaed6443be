-- additive
-- What the token of the inviter held in the account: an acceptance gives no more than that. Null for an invitation that
-- was made before this column.
alter table account_invitation add column token_patterns text[];
