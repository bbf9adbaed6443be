import { EVENT_COLUMNS, toEventValues } from '../../event/occurrence/event.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { changeStatement, rowStatement, soleRowStatement, valueStatement } from '../../postgres/statement/statement.ts'
import type { CarriedEvent } from '../log/carried-event.ts'
import type { LogPosition } from '../log/log.ts'
import { describeLease } from '../log/log-lease.ts'
import type { IntakeFault } from './intake-decision.ts'

/** Where a database stands in the log. */
export interface IntakeState {
  /** Null before the first message. */
  incarnation: string | null
  sequence: number
  storedAt: Date | null
  /** `fingerprintOf` the message at the position; null when it is not known. */
  fingerprint: string | null
  /** Read from here, and not from the position. */
  readSince: Date | null
}

const STATE = `incarnation, sequence::float8 as sequence, stored_at as "storedAt", fingerprint,
  read_since as "readSince"`
const { take: LEASE, mayTake: MAY_LEASE } = describeLease('runner')

interface Lease {
  runner: string
  leaseMs: number
}

/** Takes or renews the right to take in; undefined while another process has it, or nothing is taken in here. */
export const leaseIntake = rowStatement<IntakeState, Lease>(
  `update log_intake set ${LEASE} where name = 'events' and ${MAY_LEASE} returning ${STATE}`,
)

/** Gives the right back. */
export const releaseIntake = changeStatement<{ runner: string }>(
  `update log_intake set runner = null, lease_until = null where name = 'events' and runner = $runner`,
)

/** In a cell: the events of the accounts that are here. */
const OF_ACCOUNTS = `x.account is not null and exists (
  select from account_fence f where f.account = x.account and f.state in ('open', 'held') offset 0)`

/** In home: the events of the types that a global webhook subscribes to. */
const OF_GLOBAL_WEBHOOKS = `exists (
  select from event t cross join lateral (
    select from webhook_event s where s.event = t.document_id and s.account is null and s.deleted_at is null limit 1
  ) s where t.internal = x.event offset 0)`

/** The result of a taking. */
export interface TakenIn {
  /** False when another process has the right, or has moved the position: nothing was written. */
  isLeased: boolean
  taken: number
  /** The instant that somebody asked to read again from meanwhile. */
  readSince: Date | null
}

type TakeParams = Lease & {
  incarnation: string
  sequence: number
  storedAt: Date | null
  fingerprint: string | null
  seenIncarnation: string | null
  seenSequence: number
  seenSince: Date | null
  origins: readonly string[]
} & Record<string, unknown>

/** The position moves with the rows. Without an ordinal the time of an event decides which webhooks are older. */
const buildTake = (wanted: string) =>
  soleRowStatement<TakenIn, TakeParams>(`
  with leased as (
    update log_intake set ${LEASE}, incarnation = $incarnation, sequence = $sequence::float8::bigint,
      stored_at = coalesce($storedAt, stored_at), fingerprint = $fingerprint, taken_at = clock_timestamp(),
      read_since = case when read_since is not distinct from $seenSince::timestamptz then null else read_since end
    where name = 'events' and ${MAY_LEASE} and incarnation is not distinct from $seenIncarnation
      and sequence = $seenSequence::float8::bigint
    returning read_since
  ), recorded as (
    insert into event_occurrence (${listNames(EVENT_COLUMNS)}, origin, ordinal)
    select ${listNames(EVENT_COLUMNS)}, origin, null::bigint
    from unnest(${listArrays(EVENT_COLUMNS)}, $origins::text[]) as x (${listNames(EVENT_COLUMNS)}, origin)
    where exists (select from leased) and ${wanted}
    on conflict (document_id) do nothing returning document_id
  ), queued as (
    insert into event_queue select document_id from recorded
  )
  select exists (select from leased) as "isLeased", (select count(*)::int from recorded) as taken,
    (select read_since from leased) as "readSince"`)

const takeInCell = buildTake(OF_ACCOUNTS)
const takeInHome = buildTake(OF_GLOBAL_WEBHOOKS)

/** Events that are taken in, and the position behind them. */
export interface Taking extends Lease {
  isHome: boolean
  events: readonly CarriedEvent[]
  to: LogPosition
  /** When the log stored the message at the position, and its fingerprint; null when the log does not have it. */
  storedAt: Date | null
  fingerprint: string | null
  /** The state that was read. */
  seen: IntakeState
}

/**
 * Writes the new events that concern this database, queues them for the router, and moves the position: one statement.
 */
export async function takeIn(db: Database, taking: Taking): Promise<TakenIn> {
  const { isHome, events, to, storedAt, fingerprint, seen, runner, leaseMs } = taking
  const params = {
    ...transpose(
      EVENT_COLUMNS,
      events.map(({ event }) => toEventValues(event)),
    ),
    ...{ runner, leaseMs, incarnation: to.incarnation, sequence: to.sequence, storedAt, fingerprint },
    ...{ seenIncarnation: seen.incarnation, seenSequence: seen.sequence, seenSince: seen.readSince },
    origins: events.map(({ carried }) => carried.origin),
  }
  return (isHome ? takeInHome : takeInCell)(db, params as unknown as TakeParams)
}

/** Keeps a fault of the log, and reads the log again from an instant. */
export const noteFault = changeStatement<{ runner: string; fault: IntakeFault; since: Date; now: Date }>(`
  update log_intake set fault = $fault, fault_at = $now, read_since = least(read_since, $since),
    missing_since = case when $fault = 'expired' then least(missing_since, stored_at) else missing_since end
  where name = 'events' and runner = $runner`)

/** Ends the alarm of a fault: an operator has dealt with it. */
export const forgetFault = changeStatement(
  `update log_intake set fault = null, fault_at = null, missing_since = null where name = 'events'`,
)

const selectPosition = valueStatement<string | null>('select reference_position()::text as position')

/** The position of home's log of changes up to which this cell has the reference rows. */
export async function findReferencePosition(db: Database): Promise<string | undefined> {
  return (await selectPosition(db)) ?? undefined
}

/** Facts of the intake for health, metrics and the command. */
export interface IntakeFacts extends IntakeState {
  runner: string | null
  takenAt: Date
  fault: IntakeFault | null
  faultAt: Date | null
  missingSince: Date | null
}

/** Reads the facts; undefined where nothing is taken in. */
export const findIntakeFacts = rowStatement<IntakeFacts>(`
  select ${STATE}, case when lease_until > clock_timestamp() then runner end as runner, taken_at as "takenAt", fault,
    fault_at as "faultAt", missing_since as "missingSince"
  from log_intake where name = 'events'`)
