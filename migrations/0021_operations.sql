-- additive
-- The key ids under which secrets are sealed (`v1.<key id>.<iv>.<ciphertext>`), so that health and metrics find a key that
-- SECRET_KEY does not list without reading the tables.
create index webhook_key_idx on webhook (split_part(secret_encrypted, '.', 2)) where secret_encrypted is not null;
create index provisioning_target_key_idx on provisioning_target (split_part(secret_encrypted, '.', 2))
  where secret_encrypted is not null;
create index totp_factor_key_idx on totp_factor (split_part(secret_encrypted, '.', 2))
  where secret_encrypted is not null;
create index oauth_signing_key_key_idx on oauth_signing_key (split_part(private_key, '.', 2))
  where private_key is not null;
