import type { Database } from '../../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../../postgres/statement/locks.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** The channel of notifications between the processes. */
export const FLEET_CHANNEL = 'signalbox_realtime'

/** The lock that a process holds while its listening connection is open. */
export const fleetLock = (process: string) => `${ADVISORY_LOCKS.realtimeProcess.key}${process}`

/** A message to the other processes. */
export interface OutgoingMessage {
  number: number
  payload: string
  /** The text of its notification. */
  note: string
}

// Relayed messages do not outlive the processes, so the commit does not wait for the disk. Equal notifications of one
// transaction become one; these differ by their numbers.
const send = statement<
  never,
  { process: string; now: Date; numbers: readonly number[]; payloads: readonly string[]; notes: readonly string[] }
>(`
  with kept as (
    insert into realtime_relay (process, number, payload, created_at)
    select $process, x.number, x.payload, $now from unnest($numbers::bigint[], $payloads::text[]) as x (number, payload)
  )
  select set_config('synchronous_commit', 'off', true), pg_notify('${FLEET_CHANNEL}', x.note)
  from unnest($notes::text[]) as x (note)`)

/** Stores messages of a process and notifies the others, in their order. */
export async function sendMessages(
  db: Database,
  from: { process: string; now: Date },
  messages: readonly OutgoingMessage[],
): Promise<void> {
  const numbers = messages.map((message) => message.number)
  const payloads = messages.map((message) => message.payload)
  await send(db, { ...from, numbers, payloads, notes: messages.map((message) => message.note) })
}

const read = statement<{ number: number; payload: string }, { process: string; after: number; upTo: number }>(`
  select number, payload from realtime_relay where process = $process and number > $after and number <= $upTo
  order by number`)

/** The messages of a process after one number, up to another. */
export function readMessages(
  db: Database,
  range: { process: string; after: number; upTo: number },
): Promise<{ number: number; payload: string }[]> {
  return read(db, range)
}

/** Another process, as the database knows it. */
export interface OtherProcess {
  id: string
  seenAtMs: number
  /** Whether it holds its lock: its listening connection is open. */
  isListening: boolean
}

const renew = statement<
  { id: string; seen_at: Date; is_listening: boolean },
  { process: string; connections: number; now: Date }
>(`
  with own as (
    insert into realtime_process (id, seen_at, connections) values ($process, $now, $connections)
    on conflict (id) do update set seen_at = excluded.seen_at, connections = excluded.connections
  ), paced as (
    select set_config('synchronous_commit', 'off', true)
  )
  select p.id, p.seen_at, exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('${ADVISORY_LOCKS.realtimeProcess.key}' || p.id, 0)) as is_listening
  from realtime_process p, paced where p.id <> $process`)

/** Renews the heartbeat of a process with its open connections, and reads the others. */
export async function renewProcess(
  db: Database,
  beat: { process: string; connections: number; now: Date },
): Promise<OtherProcess[]> {
  const rows = await renew(db, beat)
  return rows.map((row) => ({ id: row.id, seenAtMs: row.seen_at.getTime(), isListening: row.is_listening }))
}

const sum = statement<{ processes: number; connections: number }, { since: Date }>(`
  select count(*)::int as processes, coalesce(sum(connections), 0)::int as connections
  from realtime_process where seen_at >= $since`)

/** The processes that reported themselves since an instant, and the connections of all of them. */
export async function sumConnections(db: Database, since: Date): Promise<{ processes: number; connections: number }> {
  const [row] = await sum(db, { since })
  return row ?? { processes: 0, connections: 0 }
}

const remove = statement<never, { process: string }>('delete from realtime_process where id = $process')

/** Removes a process that stops. */
export async function removeProcess(db: Database, process: string): Promise<void> {
  await remove(db, { process })
}

const sweep = statement<never, { messages: Date; processes: Date }>(`
  with messages as (delete from realtime_relay where created_at < $messages)
  delete from realtime_process where seen_at < $processes`)

/** Deletes old messages, and processes that ended without saying so. */
export async function sweepFleet(db: Database, before: { messages: Date; processes: Date }): Promise<void> {
  await sweep(db, before)
}
