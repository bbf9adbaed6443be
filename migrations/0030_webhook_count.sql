-- additive
-- How many webhooks there are, for the dashboard: counted as they change, because to count them takes longer with each one.

-- The sums of all rows are the counts. Each change adds a row of its own, so that no change waits for another, and the
-- sweep adds them up.
create table webhook_count (
  number bigint generated always as identity primary key,
  active bigint not null,
  inactive bigint not null,
  -- Of the inactive ones those that the service disabled.
  auto_disabled bigint not null
);

-- What a webhook counts as.
create function webhook_counts_as(given webhook) returns table (active int, inactive int, auto_disabled int)
language sql immutable rows 1 as $$
  select (given.deleted_at is null and given.is_actived)::int,
    (given.deleted_at is null and not given.is_actived)::int,
    (given.deleted_at is null and not given.is_actived and given.disabled_reason is not distinct from 'consecutive-failures')::int
$$;

create function count_webhooks() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into webhook_count (active, inactive, auto_disabled)
    select sum(c.active), sum(c.inactive), sum(c.auto_disabled)
    from changed w cross join lateral webhook_counts_as(w::webhook) c having count(*) > 0;
  else
    insert into webhook_count (active, inactive, auto_disabled)
    select -sum(c.active), -sum(c.inactive), -sum(c.auto_disabled)
    from changed w cross join lateral webhook_counts_as(w::webhook) c having count(*) > 0;
  end if;
  return null;
end $$;

create function count_webhook_change() returns trigger language plpgsql as $$
begin
  insert into webhook_count (active, inactive, auto_disabled)
  select n.active - o.active, n.inactive - o.inactive, n.auto_disabled - o.auto_disabled
  from webhook_counts_as(new) n, webhook_counts_as(old) o;
  return null;
end $$;

create function forget_webhook_counts() returns trigger language plpgsql as $$
begin
  delete from webhook_count;
  return null;
end $$;

create trigger webhook_count_truncate after truncate on webhook
  for each statement execute function forget_webhook_counts();
create trigger webhook_count_insert after insert on webhook referencing new table as changed
  for each statement execute function count_webhooks();
create trigger webhook_count_delete after delete on webhook referencing old table as changed
  for each statement execute function count_webhooks();
create trigger webhook_count_update after update on webhook for each row
  when (old.is_actived <> new.is_actived or old.deleted_at is distinct from new.deleted_at
    or old.disabled_reason is distinct from new.disabled_reason)
  execute function count_webhook_change();

-- The triggers hold a lock on the webhooks until the end, so nothing is missed and nothing counted twice.
insert into webhook_count (active, inactive, auto_disabled)
select sum(c.active), sum(c.inactive), sum(c.auto_disabled)
from webhook w cross join lateral webhook_counts_as(w) c having count(*) > 0;
