import type { Database } from '../../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../../postgres/statement/locks.ts'
import { changeStatement, soleRowStatement, statement } from '../../../postgres/statement/statement.ts'
import { writeNote } from '../application/fleet-message.ts'

/** The channel of notifications between the processes. */
export const FLEET_CHANNEL = 'signalbox_realtime'

/** The lock that a process holds while its listening connection is open. */
export const fleetLock = (process: string) => `${ADVISORY_LOCKS.realtimeProcess.key}${process}`

export interface OutgoingMessage {
  number: number
  payload: string
}

/** Who sends, and when; and whether these messages are those that the bus may carry. */
export interface Sender {
  process: string
  isCarried: boolean
  now: Date
}

// Relayed messages do not outlive the processes, so the commit does not wait for the disk. Equal notifications of one
// transaction become one; these differ by their numbers. A repeated message is there already.
const send = statement<
  never,
  Sender & { numbers: readonly number[]; payloads: readonly string[]; notes: readonly string[] }
>(`
  with kept as (
    insert into realtime_relay (process, is_carried, number, payload, created_at)
    select $process, $isCarried, x.number, x.payload, $now
    from unnest($numbers::bigint[], $payloads::text[]) as x (number, payload)
    on conflict (process, is_carried, number) do nothing
  )
  select set_config('synchronous_commit', 'off', true), pg_notify('${FLEET_CHANNEL}', x.note)
  from unnest($notes::text[]) as x (note)`)

/** Stores messages of a process and notifies the others, in their order. */
export async function sendMessages(db: Database, from: Sender, messages: readonly OutgoingMessage[]): Promise<void> {
  const { process, isCarried } = from
  await store(
    db,
    from,
    messages,
    messages.map((message) => writeNote({ process, isCarried, ...message })),
  )
}

/** Stores messages of a process, of which the others are told by other means. */
export async function storeMessages(db: Database, from: Sender, messages: readonly OutgoingMessage[]): Promise<void> {
  await store(db, from, messages, [])
}

async function store(
  db: Database,
  from: Sender,
  messages: readonly OutgoingMessage[],
  notes: readonly string[],
): Promise<void> {
  const numbers = messages.map((message) => message.number)
  const payloads = messages.map((message) => message.payload)
  await send(db, { ...from, numbers, payloads, notes })
}

/** A part of the messages of a process: after one number, up to another. */
export interface MessageRange {
  process: string
  isCarried: boolean
  after: number
  upTo: number
}

/** The stored messages of a range, in their order. */
export const readMessages = statement<OutgoingMessage, MessageRange>(`
  select number, payload from realtime_relay
  where process = $process and is_carried = $isCarried and number > $after and number <= $upTo
  order by number`)

export interface OtherProcess {
  id: string
  seenAtMs: number
  /** Whether it holds its lock: its listening connection is open. */
  isListening: boolean
  /** Whether it receives what is sent by the bus. */
  isOnBus: boolean
  /** The number of the last message that it sent, of those that the bus may carry. */
  carried: number
}

/** The state of a process that it tells the others with its heartbeat. */
export interface Heartbeat {
  process: string
  now: Date
  isOnBus: boolean
  carried: number
  connections: number
}

interface ProcessRow {
  id: string
  seen_at: Date
  is_listening: boolean
  is_on_bus: boolean
  carried: number
}

const renew = statement<ProcessRow, Heartbeat>(`
  with own as (
    insert into realtime_process (id, seen_at, is_on_bus, carried, connections)
    values ($process, $now, $isOnBus, $carried, $connections)
    on conflict (id) do update
    set seen_at = excluded.seen_at, is_on_bus = excluded.is_on_bus, carried = excluded.carried,
      connections = excluded.connections
  ), paced as (
    select set_config('synchronous_commit', 'off', true)
  )
  select p.id, p.seen_at, p.is_on_bus, p.carried, exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('${ADVISORY_LOCKS.realtimeProcess.key}' || p.id, 0)) as is_listening
  from realtime_process p, paced where p.id <> $process`)

/** Renews the heartbeat of a process, and reads the others. */
export async function renewProcess(db: Database, heartbeat: Heartbeat): Promise<OtherProcess[]> {
  const rows = await renew(db, heartbeat)
  return rows.map((row) => ({
    ...{ id: row.id, seenAtMs: row.seen_at.getTime(), isListening: row.is_listening },
    ...{ isOnBus: row.is_on_bus, carried: row.carried },
  }))
}

/** The processes that reported themselves since an instant, and the connections of all of them. */
export const sumConnections = soleRowStatement<{ processes: number; connections: number }, { since: Date }>(`
  select count(*)::int as processes, coalesce(sum(connections), 0)::int as connections
  from realtime_process where seen_at >= $since`)

/** Removes a process that stops. */
export const removeProcess = changeStatement<{ process: string }>('delete from realtime_process where id = $process')

/** Deletes old messages, and processes that ended without an announcement. */
export const sweepFleet = changeStatement<{ messages: Date; processes: Date }>(`
  with messages as (delete from realtime_relay where created_at < $messages)
  delete from realtime_process where seen_at < $processes`)
