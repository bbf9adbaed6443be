-- additive
-- How many secrets of a client are valid. It takes the id of a locked client, so that it counts behind the lock.
create function live_secrets_of(of_client uuid, at timestamptz) returns integer language plpgsql volatile as $$
begin
  return (select count(*)::int from oauth_client_secret s
    where s.client = of_client and (s.expires_at is null or s.expires_at > at));
end $$;

-- The ways in of a user besides its identities, behind the locks of a disconnection: those of the identity first, as
-- `lock_identity` takes them at a sign-in, which writes the identity again and would bring it back; then the user, as
-- whoever removes a way in.
create function lock_ways_in(asked uuid, of_user uuid) returns table (holder uuid, has_password boolean, passkeys integer)
language plpgsql volatile rows 1 as $$
begin
  perform lock_identity(i.provider, i.subject, coalesce(i.email, ''))
    from identity i where i.document_id = asked and i."user" = of_user;
  perform from "user" u where u.document_id = of_user for no key update;
  return query select u.document_id, u.password_hash is not null,
      (select count(*)::int from passkey p where p."user" = of_user)
    from "user" u where u.document_id = of_user;
end $$;

-- Locks a user, and says behind the lock whether it has a second factor.
create function lock_has_factor(holder uuid) returns boolean language plpgsql volatile as $$
begin
  perform from "user" u where u.document_id = holder for no key update;
  return exists (select from passkey p where p."user" = holder)
    or exists (select from totp_factor t where t."user" = holder and t.confirmed_at is not null);
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

-- As before, but the grant is locked before the question, as whoever ends a grant locks it before its tokens.
-- Takes the question for consent with this id, which asks this person, and reads what the person allowed the client before:
-- behind the locks of the person, the client and the grant, so that of two decisions the second knows the first. Nothing is
-- returned when the session of the decision has ended.
create or replace function claim_consent(asked bytea, at timestamptz, person uuid, deciding uuid) returns table (
  payload jsonb, consumed_at timestamptz, created_at timestamptz, document_id uuid, "user" uuid, client uuid,
  scopes text[], refused_scopes text[], redirect_uris text[], updated_at timestamptz
) language plpgsql volatile rows 1 as $$
declare
  of_client uuid;
  claimed jsonb;
begin
  perform from "user" u where u.document_id = person and u.is_actived and u.deleted_at is null for no key update;
  if not found or (deciding is not null and not exists (
      select from session s where s.document_id = deciding and s.revoked_at is null and s.expires_at > at)) then
    return;
  end if;
  select uuid_of(i.payload -> 'params' ->> 'client_id') into of_client
    from oauth_state i where i.model = 'Interaction' and i.id_hash = asked;
  perform from oauth_client c where c.document_id = of_client and c.deleted_at is null for share;
  if not found then
    return;
  end if;
  perform from oauth_grant g
    where g."user" = person and g.client = of_client and num_nonnulls(g.revoked_at) = 0 for no key update;
  update oauth_state i set consumed_at = at
    where i.model = 'Interaction' and i.id_hash = asked and (i.expires_at > at) is true and i.consumed_at is null
      and i.payload -> 'session' ->> 'accountId' = person::text and i.payload -> 'prompt' ->> 'name' = 'consent'
    returning i.payload into claimed;
  if claimed is null then
    return;
  end if;
  return query select claimed, at, to_timestamp((claimed ->> 'iat')::double precision)::timestamptz,
      g.document_id, g."user", g.client, g.scopes, g.refused_scopes, g.redirect_uris, g.updated_at
    from (select 1) one
    left join oauth_grant g on g."user" = person and g.client = of_client and g.revoked_at is null;
end $$;
