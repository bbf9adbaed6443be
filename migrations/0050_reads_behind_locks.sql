-- additive
-- How many secrets of a client are valid. It takes the id of a locked client, so that it counts behind the lock.
create function live_secrets_of(of_client uuid, at timestamptz) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from oauth_client_secret s
    where s.client = of_client and (s.expires_at is null or s.expires_at > at));
end $$;

-- Serializes the disconnection of an identity with the sign-ins by it, as `lock_identity` does: a sign-in writes the identity
-- again, and would bring back one that is disconnected meanwhile.
create function lock_identity_of(asked uuid, holder uuid) returns void language plpgsql volatile as $$
begin
  perform lock_identity(i.provider, i.subject, coalesce(i.email, ''))
    from identity i where i.document_id = asked and i."user" = holder;
end $$;

-- Locks an active person, then a first-party client that is not deleted, as `claim_consent` does: false when one of them is
-- not there any more, and then nothing may be granted without a question.
create function lock_silent_grant(person uuid, of_client uuid) returns boolean language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = person and u.is_actived and u.deleted_at is null for no key update;
  if not found then
    return false;
  end if;
  perform from oauth_client c where c.document_id = of_client and c.deleted_at is null and c.first_party for share;
  return found;
end $$;
