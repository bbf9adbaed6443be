-- additive
-- Contracts, the worked example of a platform's own resource.

drop index contract_account_idx;
create index contract_account_idx on contract (account, created_at desc) where deleted_at is null and account is not null;
