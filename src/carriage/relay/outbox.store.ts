import type { EventId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord } from '../../postgres/statement/record.ts'
import { changeStatement, rowStatement, statement, testStatement } from '../../postgres/statement/statement.ts'
import type { LoggedEvent } from '../log/carried-event.ts'
import type { LogPosition } from '../log/log.ts'
import { describeLease } from '../log/log-lease.ts'
import { ADOPTED, type AdoptedEnd } from './adopted.store.ts'

const event = defineRecord(
  'event_occurrence',
  [
    ...(['document_id', 'event', 'account', 'resource', 'action'] as const),
    ...(['resource_id', 'url', 'trace_context', 'created_at', 'is_purge', 'excluded_webhook'] as const),
  ],
  { event: 'type', trace_context: 'trace' },
)

/** An event to append. `position` is its place in the outbox, of a republished one its ordinal. */
export type WaitingEvent = LoggedEvent & { position: string }

/**
 * The additions of a service with cells: the service, the database that recorded the event, and of home the position of
 * its log of changes, behind all that the event refers to. Null without cells. One row, read once a statement.
 */
const CARRIED = `(
  select json_build_object('home', d.home, 'origin', coalesce(d.cell, 'home'),
    'reference', case when d.cell is null then pg_current_wal_insert_lsn()::text end)
  from database_identity d where d.is_only) as carried`

/** Events being published again: those after an instant and an ordinal, until an instant. */
export interface Republication {
  after: Date
  ordinal: string
  until: Date
}

/** The last message of this database in the log, and when its event was recorded; nulls before the first one. */
export interface OwnMessage {
  ownSequence: number | null
  ownEvent: EventId | null
  ownAt: Date | null
}

/** State of the log in the database. */
export interface RelayState extends OwnMessage, AdoptedEnd {
  /** The last confirmed position; `incarnation` is null before the first one. */
  incarnation: string | null
  sequence: number
  republishAfter: Date | null
  republishOrdinal: string | null
  republishUntil: Date | null
}

const { take: LEASE, mayTake: MAY_LEASE } = describeLease('relay')

const STATE = `incarnation, last_sequence::float8 as sequence, own_sequence::float8 as "ownSequence",
  own_event as "ownEvent", own_at as "ownAt", ${ADOPTED}, republish_after as "republishAfter",
  republish_ordinal::text as "republishOrdinal", republish_until as "republishUntil"`

/** Takes or renews the lease to append; undefined while another process has it, or the log is off. */
export const leaseRelay = rowStatement<RelayState, { relay: string; leaseMs: number }>(
  `update event_log set ${LEASE} where name = 'events' and ${MAY_LEASE} returning ${STATE}`,
)

/** Nobody stood in since the lease was taken: what its process knows of the log is what the database knows. */
const HAS_LEASE = 'relay = $relay'

/** Renews the lease; undefined when another process took it in between, also when it gave it back. */
export const renewRelay = rowStatement<RelayState, { relay: string; leaseMs: number }>(
  `update event_log set ${LEASE} where name = 'events' and ${HAS_LEASE} returning ${STATE}`,
)

/** Releases the lease. */
export const releaseRelay = changeStatement<{ relay: string }>(
  `update event_log set relay = null, lease_until = null where name = 'events' and ${HAS_LEASE}`,
)

/** Confirmations of the log since the last statement. */
export interface Confirmed {
  positions: readonly string[]
  end: LogPosition
  /** The last message that this process has appended. */
  own: Appended | undefined
}

export interface Appended {
  sequence: number
  event: Pick<WaitingEvent, 'id' | 'createdAt'>
}

/** A message that others append leaves the own one as it is. */
const OWN = `own_sequence = coalesce($ownSequence::float8::bigint, own_sequence),
      own_event = coalesce($ownEvent::uuid, own_event),
      own_at = coalesce($ownAt::timestamptz, own_at)`

const toOwn = (own: Appended | undefined): OwnMessage => ({
  ownSequence: own?.sequence ?? null,
  ownEvent: own?.event.id ?? null,
  ownAt: own?.event.createdAt ?? null,
})

/**
 * Renews the lease, deletes confirmed events, and reads waiting events, in one statement. `event_log` is looked up by
 * its key, the events each by its own. Without the lease nothing is written: an empty outbox tells a move that
 * `last_sequence` covers all of its events. With it there is one row at least, without a position where nothing waits.
 */
const take = statement<
  Omit<WaitingEvent, 'id' | 'position'> & { id: WaitingEvent['id'] | null; position: string | null },
  OwnMessage & {
    relay: string
    leaseMs: number
    positions: readonly string[]
    incarnation: string
    sequence: number
    limit: number
  }
>(`
  with leased as (
    update event_log set ${LEASE}, incarnation = $incarnation, last_sequence = $sequence::float8::bigint, ${OWN},
      appended_at = case when cardinality($positions::bigint[]) > 0 then clock_timestamp() else appended_at end
    where name = 'events' and ${HAS_LEASE} returning republish_until
  ), confirmed as (
    delete from event_outbox where position = any($positions::bigint[]) and exists (select from leased)
  )
  select o.position::text as position, e.*, ${CARRIED}
  from leased left join (
    select q.position, q.event_id from event_outbox q
    where q.position <> all($positions::bigint[]) order by q.position limit $limit
  ) o on leased.republish_until is null left join lateral (
    select ${event.members('e')} from event_occurrence e where e.document_id = o.event_id offset 0
  ) e on true
  order by o.position`)

/** The events that wait, in the order of the outbox, and the positions of those that retention removed. */
export interface Taken {
  events: WaitingEvent[]
  removed: string[]
}

/**
 * Confirms, and takes the next events; none while events are published again. Undefined, and nothing is written, when
 * another process took the lease since `leaseRelay`.
 */
export async function takeWaiting(
  db: Database,
  given: { relay: string; leaseMs: number; confirmed: Confirmed; limit: number },
): Promise<Taken | undefined> {
  const { relay, leaseMs, confirmed, limit } = given
  const { incarnation, sequence } = confirmed.end
  const own = toOwn(confirmed.own)
  const rows = await take(db, { relay, leaseMs, positions: confirmed.positions, incarnation, sequence, ...own, limit })
  if (rows.length === 0) return undefined
  const isEvent = (row: (typeof rows)[number]): row is WaitingEvent => row.id !== null
  const removed = rows.filter((row) => !isEvent(row)).map(({ position }) => position)
  return { events: rows.filter(isEvent), removed: removed.filter((position) => position !== null) }
}

/** Every event that may have been lost is visible to this statement, also one of a process whose clock is ahead. */
const UNTIL = `greatest($now::timestamptz,
  (select created_at from event_occurrence order by created_at desc limit 1))`

const BEGIN = `
  republish_ordinal = case when republish_after < $after then republish_ordinal else 0 end,
  republish_after = least(republish_after, $after), republish_until = ${UNTIL}`

/** Begins to republish the events recorded after an instant, the earlier one of two requests. False: the log is off. */
export const beginRepublication = testStatement<{ after: Date; now: Date }>(
  `update event_log set ${BEGIN} where name = 'events'`,
)

/** Messages that came by a move meanwhile are compared by the next check. */
const note = rowStatement<
  RelayState,
  { after: Date; now: Date; loss: string; incarnation: string; sequence: number; relay: string } & AdoptedEnd
>(`
  update event_log set ${BEGIN}, loss = $loss, loss_at = $now, incarnation = $incarnation,
    last_sequence = $sequence::float8::bigint, own_sequence = null, own_event = null, own_at = null,
    adopted_incarnation = case when (adopted_incarnation, adopted_sequence, adopted_event) is distinct from
      ($adoptedIncarnation::text, $adoptedSequence::float8::bigint, $adoptedEvent::uuid) then adopted_incarnation end
  where name = 'events' and ${HAS_LEASE} returning ${STATE}`)

/** Does so after a loss, for the present log; `adopted` is over. Undefined when another process has the lease. */
export async function noteLoss(
  db: Database,
  given: { relay: string; loss: string; after: Date; now: Date; end: LogPosition; adopted: AdoptedEnd },
): Promise<RelayState | undefined> {
  const { end, adopted, ...rest } = given
  const { adoptedIncarnation, adoptedSequence, adoptedEvent } = adopted
  const seen = { adoptedIncarnation, adoptedSequence, adoptedEvent }
  return note(db, { ...rest, ...seen, incarnation: end.incarnation, sequence: end.sequence })
}

/** The next events to republish, in the order of their recording. */
export const readRepublished = statement<WaitingEvent, Republication & { limit: number }>(`
  select e.ordinal::text as position, ${event.members('e')}, ${CARRIED} from event_occurrence e
  where e.origin is null and (e.created_at, e.ordinal) > ($after, $ordinal::bigint) and e.created_at <= $until
  order by e.created_at, e.ordinal limit $limit`)

const advance = testStatement<
  OwnMessage & {
    relay: string
    leaseMs: number
    incarnation: string
    sequence: number
    seen: Date
    after: Date | null
    ordinal: string | null
  }
>(`
  update event_log set ${LEASE}, incarnation = $incarnation, last_sequence = $sequence::float8::bigint, ${OWN},
    appended_at = clock_timestamp(), republish_after = $after, republish_ordinal = $ordinal::bigint,
    republish_until = case when $after::timestamptz is null then null else republish_until end
  where name = 'events' and ${HAS_LEASE} and republish_after is not distinct from $seen::timestamptz`)

/**
 * Confirms republished events: `next` is the last of them, null at the end. False when another process took the lease, or
 * an earlier instant was asked for in between.
 */
export async function advanceRepublication(
  db: Database,
  given: {
    relay: string
    leaseMs: number
    end: LogPosition
    own: Appended | undefined
    seen: Date
    next: { after: Date; ordinal: string } | null
  },
): Promise<boolean> {
  const { relay, leaseMs, end, own, seen, next } = given
  const after = next?.after ?? null
  const { incarnation, sequence } = end
  const ordinal = next?.ordinal ?? null
  return advance(db, { relay, leaseMs, incarnation, sequence, ...toOwn(own), seen, after, ordinal })
}

/** Turns the log on: from now on every committed event is in the outbox. Idempotent. */
export const openOutbox = changeStatement(`select open_event_log()`)

/** Turns the log off, and removes the waiting events. */
export const closeOutbox = changeStatement(`select close_event_log()`)
