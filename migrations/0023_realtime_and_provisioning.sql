-- additive
-- What happened in the channels of realtime clients, as the provider's webhooks and the embedded server report it.

create table realtime_channel_event (
  document_id uuid primary key,
  -- What makes a report one report: the digest of a webhook's body, or the process and a number; and the place within it.
  origin text not null,
  position integer not null,
  name text not null check (name in ('channel_occupied', 'channel_vacated', 'member_added', 'member_removed',
    'client_event', 'cache_miss', 'subscription_count')),
  channel text not null,
  user_id text,
  -- Of a client event: its name and the bytes of its data.
  event text,
  bytes integer,
  subscription_count integer,
  -- When it happened, by the clock of who reports it.
  happened_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  unique (origin, position)
);
create index realtime_channel_event_created_idx on realtime_channel_event (created_at, document_id);
create index realtime_channel_event_channel_idx on realtime_channel_event (channel, created_at);

-- What the reports come to for each channel. An older report, which arrives late, changes nothing.
create table realtime_channel_state (
  channel text primary key,
  -- Null: vacated.
  occupied_since timestamptz(3),
  occupancy_at timestamptz(3),
  subscription_count integer,
  counted_at timestamptz(3),
  changed_at timestamptz(3) not null
);
create index realtime_channel_state_changed_idx on realtime_channel_state (changed_at);

-- Subscriptions that were authorized at a provider outside of the service: it cannot say whose they are, and the process
-- that authorized them may be gone when the user loses the access.
create table realtime_grant (
  user_id uuid not null,
  channel text not null,
  account uuid not null,
  granted_at timestamptz(3) not null,
  primary key (user_id, channel)
) with (fillfactor = 80);
create index realtime_grant_granted_idx on realtime_grant (granted_at);

-- Without a target nothing of provisioning is looked for: the first one is noted.
create function note_target_change() returns trigger language plpgsql as $$
begin
  perform note_change('t');
  return null;
end $$;
create trigger note_change after insert or delete or update of deleted_at on provisioning_target
  for each statement execute function note_target_change();
