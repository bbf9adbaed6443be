-- not additive: kept answers change their type
-- The answer of an idempotency key is kept as it was sent, with the owner of what was changed: a caller who lost that
-- account does not get the answer again.
alter table idempotency_key alter column response type text using response::text;
alter table idempotency_key add column account uuid;

-- Processes hold in memory who a token stands for, and which reads have subscribers. Triggers note every change of what
-- those are made of: for the transaction itself (signalbox.notes, read by its last statement) and for every process
-- (NOTIFY, sent at commit). Notes: 's:<session>', 'k:<API key>', 'u:<user>', 'r' (subscriptions of reads), '*' (drop all).
create function note_change(note text) returns void language plpgsql as $$
declare
  noted text := coalesce(current_setting('signalbox.notes', true), '');
begin
  if noted = '*' or note = any (string_to_array(noted, ',')) then
    return;
  end if;
  -- Beyond some 50 notes it is cheaper to drop all than to name each.
  if note = '*' or length(noted) > 2000 then
    note := '*';
    noted := '';
  end if;
  perform set_config('signalbox.notes', case when noted = '' then note else noted || ',' || note end, true);
  perform pg_notify('signalbox_change', note);
end $$;

create function note_session_change() returns trigger language plpgsql as $$
begin
  perform note_change('s:' || old.document_id);
  return null;
end $$;
create trigger note_change after update of "user", account, expires_at, revoked_at or delete on session
  for each row execute function note_session_change();

create function note_api_key_change() returns trigger language plpgsql as $$
begin
  perform note_change('k:' || old.document_id);
  return null;
end $$;
create trigger note_change after update of "user", permissions, expires_at, revoked_at or delete on api_key
  for each row execute function note_api_key_change();

create function note_user_change() returns trigger language plpgsql as $$
begin
  perform note_change('u:' || old.document_id);
  return null;
end $$;
create trigger note_change after update of is_actived, deleted_at or delete on "user"
  for each row execute function note_user_change();

create function note_user_row_change() returns trigger language plpgsql as $$
begin
  perform note_change('u:' || case when tg_op = 'DELETE' then old."user" else new."user" end);
  if tg_op = 'UPDATE' and old."user" <> new."user" then
    perform note_change('u:' || old."user");
  end if;
  return null;
end $$;
create trigger note_change after insert or update or delete on user_role
  for each row execute function note_user_row_change();
create trigger note_change after insert or update or delete on account_member
  for each row execute function note_user_row_change();

create function note_all() returns trigger language plpgsql as $$
begin
  perform note_change('*');
  return null;
end $$;
create trigger note_change after update of is_account_scoped or delete on role
  for each statement execute function note_all();
create trigger note_change after insert or update or delete on role_permission
  for each statement execute function note_all();
create trigger note_change after update of deleted_at or delete on account
  for each statement execute function note_all();

create function note_read_subscriptions() returns trigger language plpgsql as $$
begin
  perform note_change('r');
  return null;
end $$;
create trigger note_change after insert or update of is_actived, deleted_at or delete on webhook
  for each statement execute function note_read_subscriptions();
create trigger note_change after insert or update or delete on webhook_event
  for each statement execute function note_read_subscriptions();
create trigger note_change after insert or update of is_actived, method, internal or delete on event
  for each statement execute function note_read_subscriptions();
