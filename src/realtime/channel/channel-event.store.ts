import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, selectRecord } from '../../postgres/statement/record.ts'
import { statement, valueStatement } from '../../postgres/statement/statement.ts'
import type { ChannelEvent } from './channel-event.ts'

export interface ReportedEvent extends ChannelEvent {
  /** `origin` and `position` identify a report: a repetition changes nothing. */
  origin: string
  position: number
  happenedAt: Date
}

// One statement, so that an event is recorded and applied, or neither. The channels are changed in one order, because two
// statements that wait for each other would be a deadlock. A report is applied once, and never over a later one.
const record = valueStatement<
  number,
  {
    now: Date
    origins: readonly string[]
    positions: readonly number[]
    names: readonly ReportedEvent['name'][]
    channels: readonly string[]
    users: readonly (string | null)[]
    types: readonly (string | null)[]
    sizes: readonly (number | null)[]
    counts: readonly (number | null)[]
    times: readonly Date[]
  }
>(`
  with recorded as (
    insert into realtime_channel_event (document_id, origin, position, name, channel, user_id, event, bytes,
      subscription_count, happened_at, created_at)
    select uuid_at($now, x.n::integer), x.origin, x.position, x.name, x.channel, x.user_id, x.event, x.bytes, x.count,
      x.happened_at, $now
    from unnest($origins::text[], $positions::integer[], $names::text[], $channels::text[], $users::text[],
      $types::text[], $sizes::integer[], $counts::integer[], $times::timestamptz[]) with ordinality
      as x (origin, position, name, channel, user_id, event, bytes, count, happened_at, n)
    on conflict (origin, position) do nothing
    returning *
  ), latest as (
    select channel,
      (array_agg(name order by happened_at desc, position desc) filter (where name like 'channel_%'))[1] as occupancy,
      max(happened_at) filter (where name like 'channel_%') as occupancy_at,
      (array_agg(subscription_count order by happened_at desc, position desc)
        filter (where subscription_count is not null))[1] as count,
      max(happened_at) filter (where subscription_count is not null) as counted_at
    from recorded group by channel
  ), applied as (
    insert into realtime_channel_state as s (channel, occupied_since, occupancy_at, subscription_count, counted_at,
      changed_at)
    select channel, case when occupancy = 'channel_occupied' then occupancy_at end, occupancy_at, count, counted_at,
      $now
    from latest where occupancy_at is not null or counted_at is not null order by channel
    on conflict (channel) do update set changed_at = excluded.changed_at,
      occupied_since = case when excluded.occupancy_at >= coalesce(s.occupancy_at, '-infinity')
        then excluded.occupied_since else s.occupied_since end,
      occupancy_at = greatest(s.occupancy_at, excluded.occupancy_at),
      subscription_count = case when excluded.counted_at >= coalesce(s.counted_at, '-infinity')
        then excluded.subscription_count else s.subscription_count end,
      counted_at = greatest(s.counted_at, excluded.counted_at)
  ) select count(*)::int as count from recorded`)

/** Records reports, and applies them to the states of the channels. Returns the number of new events. */
export function recordChannelEvents(db: Database, events: readonly ReportedEvent[], now: Date): Promise<number> {
  const column = <Value>(read: (event: ReportedEvent) => Value) => events.map(read)
  return record(db, {
    now,
    origins: column((row) => row.origin),
    positions: column((row) => row.position),
    names: column((row) => row.name),
    channels: column((row) => row.channel),
    users: column((row) => row.userId),
    types: column((row) => row.event),
    sizes: column((row) => row.bytes),
    counts: column((row) => row.subscriptionCount),
    times: column((row) => row.happenedAt),
  })
}

/** A recorded event. */
export const channelEvent = defineRecord('realtime_channel_event', [
  'document_id',
  'name',
  'channel',
  'user_id',
  'event',
  'bytes',
  'subscription_count',
  'happened_at',
  'created_at',
])

/** The recorded events, as the base of a list. */
export function selectChannelEvents(db: Database) {
  return selectRecord(db.selectFrom('realtime_channel_event'), channelEvent)
}

const listStates = statement<{ channel: string; occupied_since: Date }, { channels: readonly string[] }>(`
  select channel, occupied_since from realtime_channel_state
  where channel = any($channels) and occupied_since is not null`)

/** Start of the occupation of channels, if reported. */
export async function readOccupiedSince(db: Database, channels: readonly string[]): Promise<Map<string, Date>> {
  const rows = channels.length > 0 ? await listStates(db, { channels }) : []
  return new Map(rows.map((row) => [row.channel, row.occupied_since]))
}

const listJoins = statement<{ user: string; since: Date | null }, { channel: string; users: readonly string[] }>(`
  select u.id as user, (
    select e.happened_at from realtime_channel_event e
    where e.channel = $channel and e.user_id = u.id and e.name = 'member_added'
    order by e.happened_at desc limit 1) as since
  from unnest($users::text[]) u (id)`)

/** When members of a channel last came, if it was reported within the retention of the events. */
export async function readJoins(
  db: Database,
  { channel, users }: { channel: string; users: readonly string[] },
): Promise<Map<string, Date | null>> {
  const rows = users.length > 0 ? await listJoins(db, { channel, users }) : []
  return new Map(rows.map(({ user, since }) => [user, since]))
}

/** Deletes up to `limit` events from before `before`. Returns their number. */
export const deleteOldChannelEvents = deletionOfOld('realtime_channel_event', {
  key: 'document_id',
  time: 'created_at',
})

/** Deletes up to `limit` states of channels without a report since `before`. Returns their number. */
export const deleteOldChannelStates = deletionOfOld('realtime_channel_state', { key: 'channel', time: 'changed_at' })
