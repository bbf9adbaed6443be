import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, soleRowStatement, statement, testStatement } from '../../postgres/statement/statement.ts'
import { LOG_SKEW_MS } from '../log/log.ts'

/** Rights that home must give its user. */
export interface HomeFacts {
  walLevel: string
  /** Connections by which servers of cells read its changes, at most. */
  walSenders: number
  /** Whether the user may open a replication slot and publish tables. */
  mayReplicate: boolean
  mayPublish: boolean
  hasLog: boolean
}

/** Reads what home has. */
export const readHomeFacts = soleRowStatement<HomeFacts>(`
  select current_setting('wal_level') as "walLevel", current_setting('max_wal_senders')::int as "walSenders",
    exists (select from pg_roles where rolname = current_user and (rolsuper or rolreplication)) as "mayReplicate",
    has_database_privilege(current_database(), 'create') as "mayPublish",
    exists (select from event_log) as "hasLog"`)

/** State of a database that is to be a cell. */
export interface CandidateFacts {
  version: number
  /** Whether its user may subscribe to another database and create tables. */
  maySubscribe: boolean
  mayCreate: boolean
  /** Tables of the schema; and of ours, the record of migrations and the identity. */
  tables: number
  hasMigrations: boolean
  hasIdentity: boolean
  /** Those of `LEDGER` that exist. */
  present: string[]
}

/** The tables that have a row wherever the service ran. */
const LEDGER = ['user', 'account', 'event', 'webhook', 'event_occurrence'] as const

const selectCandidate = soleRowStatement<CandidateFacts, { names: readonly string[] }>(`
  with own as (
    select c.relname from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace
  )
  select current_setting('server_version_num')::int as version,
    exists (select from pg_roles r where r.rolname = current_user and (r.rolsuper
      or exists (select from pg_roles g where g.rolname = 'pg_create_subscription'
        and pg_has_role(current_user, g.oid, 'usage')))) as "maySubscribe",
    has_database_privilege(current_database(), 'create')
      and has_schema_privilege(current_schema(), 'create') as "mayCreate",
    (select count(*)::int from own) as tables,
    exists (select from own where relname = 'schema_migration') as "hasMigrations",
    exists (select from own where relname = 'database_identity') as "hasIdentity",
    array(select relname::text from own where relname = any($names::text[])) as present`)

/** Reads what a database has. */
export function readCandidateFacts(db: Database): Promise<CandidateFacts> {
  return selectCandidate(db, { names: LEDGER })
}

const HAS_ROWS: Readonly<Record<(typeof LEDGER)[number], (db: Database) => Promise<boolean>>> = {
  user: testStatement('select from "user" limit 1'),
  account: testStatement('select from account limit 1'),
  event: testStatement('select from event limit 1'),
  webhook: testStatement('select from webhook limit 1'),
  event_occurrence: testStatement('select from event_occurrence limit 1'),
}

/** Whether one of these tables of ours has a row. */
export async function hasRows(db: Database, present: readonly string[]): Promise<boolean> {
  for (const name of LEDGER) {
    if (present.includes(name) && (await HAS_ROWS[name](db))) return true
  }
  return false
}

const publish = statement('select publish_reference()')
const openSlot = statement<object, { slot: string }>('select open_reference_slot($slot)')
const closeSlot = statement<object, { slot: string }>('select close_reference_slot($slot)')
const subscribe = statement<object, { source: string; slot: string }>('select subscribe_reference($source, $slot)')

/** Writes the identity of a cell, and lets its triggers fire for what is replicated. Throws SQLSTATE SB002. */
export const becomeCell = changeStatement<{ home: string; name: string }>('select become_cell($home::uuid, $name)')

/** SQLSTATE of a database that belongs to another service or cell. */
export const ANOTHER_IDENTITY = 'SB002'

/** The name of the replication slot of a cell, in home. */
const slotOf = (cell: string): string => `signalbox_${cell.replaceAll('-', '_')}`

/** Publishes the reference rows, and keeps their changes for a cell from now on. Idempotent. */
export async function openReferenceSource(db: Database, cell: string): Promise<void> {
  await publish(db)
  // A slot that is opened in a transaction that has written waits for nothing, and fails: it is one of its own.
  await openSlot(db, { slot: slotOf(cell) })
}

/** Home keeps no changes for this cell any more. */
export async function closeReferenceSource(db: Database, cell: string): Promise<void> {
  await closeSlot(db, { slot: slotOf(cell) })
}

/** Subscribes a cell to the reference rows at `source`, the connection string of home. Idempotent. */
export async function joinReference(db: Database, given: { source: string; cell: string }): Promise<void> {
  await subscribe(db, { source: given.source, slot: slotOf(given.cell) })
}

/** Ends the subscription. Idempotent. */
export const leaveReference = changeStatement('select unsubscribe_reference()')

/** The standing of the reference rows in a cell. */
export interface ReferenceFacts {
  /** Whether there is a subscription, and its worker has a connection. */
  isSubscribed: boolean
  isRunning: boolean
  /** Tables whose first copy has not ended. */
  copying: number
  /** The position of home's log of changes that the cell has; null before the first answer. */
  position: string | null
}

/** Reads the standing of the reference rows. */
export const readReferenceFacts = soleRowStatement<ReferenceFacts>(`
  select s.oid is not null as "isSubscribed", coalesce(s.subenabled, false) and p.pid is not null as "isRunning",
    (select count(*)::int from pg_subscription_rel r where r.srsubid = s.oid and r.srsubstate <> 'r') as copying,
    reference_position()::text as position
  from (values (1)) one (n)
  left join (select s.oid, s.subenabled from pg_subscription s join pg_database d on d.oid = s.subdbid
    where d.datname = current_database() and s.subname = 'signalbox_reference') s on true
  left join pg_stat_subscription p on p.subid = s.oid and p.relid is null`)

/** Reference of home for a cell. */
export interface SourceFacts {
  /** Bytes of home's log of changes that the cell has not confirmed; null without a slot. */
  lagBytes: number | null
  /** Whether the server gave the slot up, or it is not there. */
  isLost: boolean
}

const selectSource = soleRowStatement<SourceFacts, { slot: string }>(`
  select pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::float8 as "lagBytes",
    s.slot_name is null or coalesce(s.wal_status = 'lost', false) as "isLost"
  from (values (1)) one (n) left join pg_replication_slots s on s.slot_name = $slot`)

/** Reads what home keeps for a cell. */
export function readSourceFacts(db: Database, cell: string): Promise<SourceFacts> {
  return selectSource(db, { slot: slotOf(cell) })
}

const begin = changeStatement<{ since: Date; now: Date }>(`
  insert into log_intake (name, read_since, taken_at) values ('events', $since, $now) on conflict (name) do nothing`)

/** From now on, and from a little before, this database takes in events of the log. Idempotent. */
export async function beginIntake(db: Database, now: Date): Promise<void> {
  await begin(db, { since: new Date(now.getTime() - LOG_SKEW_MS), now })
}
