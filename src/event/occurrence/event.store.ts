import { sql } from 'kysely'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { buildPart, type OwnAccount, type RowList } from '../../http/listing/page.ts'
import type { FindOwner, RowOwner } from '../../http/route/cell-key.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { markAhead } from '../../postgres/statement/dialect.ts'
import {
  compileFragment,
  type Fragment,
  insertOf,
  listNames,
  listPlaces,
  nameValues,
} from '../../postgres/statement/fragment.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, columnStatement, rowStatement, testStatement } from '../../postgres/statement/statement.ts'
import { EventRow } from './event.schema.ts'

/** The columns of a recorded event, with their types. */
export const EVENT_COLUMNS = [
  ['document_id', 'uuid'],
  ['event', 'text'],
  ['account', 'uuid'],
  ['resource', 'text'],
  ['action', 'text'],
  ['resource_id', 'text'],
  ['url', 'text'],
  ['is_purge', 'boolean'],
  ['excluded_webhook', 'uuid'],
  ['trace_context', 'text'],
  ['created_at', 'timestamptz'],
] as const

/** A stored event; `routedAt` is the time of its routing, null before. */
const stored = defineRecord('event_occurrence', [...EVENT_COLUMNS.map(([name]) => name), 'routed_at'], {
  event: 'type',
  trace_context: 'trace',
}).typed<{ account: AccountId | null; excludedWebhook: WebhookId | null }>()
export type StoredEvent = RecordOf<typeof stored>

export type EventRecord = Omit<StoredEvent, 'routedAt'>

const toStoredRow = wireOf(stored, EventRow)

/** Maps an event for the wire. */
export function toEventRow(event: StoredEvent): Static<typeof EventRow> {
  return { ...toStoredRow(event), updated_at: (event.routedAt ?? event.createdAt).toISOString() }
}

const MEMBERS = EVENT_COLUMNS.map(([name]) => stored.memberOf(name) as keyof EventRecord)

/** The values of an event, in the order of `EVENT_COLUMNS`. */
export const toEventValues = (event: EventRecord): unknown[] => MEMBERS.map((member) => event[member])

const NAMES = listNames(EVENT_COLUMNS)
const insert = insertOf('event_occurrence', EVENT_COLUMNS, 'returning document_id')

/** The part of a statement that inserts events and returns the `document_id` of each. */
export const buildEventInsert = (events: readonly EventRecord[]): Fragment => insert(events.map(toEventValues))

/** The part of a statement that queues the events that its part `recorded` returned, for the router. */
export function buildQueueInsert(recorded: string): string {
  return `insert into event_queue select document_id from ${recorded}`
}

/** Records events and queues them for the router; sent with the next statement of a transaction. */
export async function insertEvents(db: Database, events: readonly EventRecord[]): Promise<void> {
  const { text, ...rest } = buildEventInsert(events)
  const queued = `with recorded as (${text}) ${buildQueueInsert('recorded')}`
  await db.executeQuery(markAhead(compileFragment({ ...rest, text: queued })))
}

const insertRouted = closingStatement<Record<string, unknown>>(`
  routed_event as (
    insert into event_occurrence (${NAMES}, routed_at)
    values (${listPlaces(EVENT_COLUMNS)}, $created_at))`)

/** Records an event that its caller routes itself, with the last statement of the transaction. */
export async function insertRoutedEvent(db: Database, event: EventRecord): Promise<void> {
  await insertRouted(db, nameValues(EVENT_COLUMNS, toEventValues(event)))
}

/**
 * The event types of routes that are active and have an active webhook that subscribes to them. `offset 0`: each type
 * is looked up until its first subscription, whatever the statistics of the tables.
 */
export const listSubscribedTypes = columnStatement<string>(`
  select e.internal from event e
  where e.source = 'route' and e.is_actived and exists (
    select from webhook_event s cross join lateral (
      select w.is_actived and w.deleted_at is null as is_live from webhook w where w.document_id = s.webhook offset 0) w
    where s.event = e.document_id and s.deleted_at is null and w.is_live offset 0)`)

/**
 * The names of the event types visible to a caller of the accounts `accounts`: those with account scope (only their
 * events have an account) that have the mark or a subscription of a webhook of the accounts. `offset 0`: each type is
 * looked up, whatever the number of subscriptions.
 */
const VISIBLE_TYPES = (accounts: string) => `
  array(select t.internal from event t where t.account_scope = 'account' and (t.is_tenant_visible or exists (
    select from webhook_event s where s.event = t.document_id and s.account = any(${accounts}) and s.deleted_at is null
    offset 0)))`

/** The events of an account, or of all; for callers of `scope` those of visible event types. The base of a list. */
export function selectEvents(db: Database, own: OwnAccount | undefined, scope: PermissionScope) {
  const all = selectRecord(db.selectFrom('event_occurrence'), stored)
  if (!own || scope === 'all') return all
  const [before = '', after = ''] = VISIBLE_TYPES('$').split('$')
  const types = sql<string[]>`${sql.raw(before)}${[...scope]}::uuid[]${sql.raw(after)}`
  return all.where('account', '=', own).where((eb) => eb('event', '=', eb.fn.any(types)))
}

/** All events of a database, to be merged with those of others: an event is counted where it was recorded. */
export function listMergedEvents(db: Database): RowList<StoredEvent> {
  const all = selectRecord(db.selectFrom('event_occurrence'), stored)
  const { counted } = buildPart(all.where('origin', 'is', null))
  return { scope: 'all', parts: () => [{ ...buildPart(all), counted }] }
}

/** Whether an event belongs to one of these accounts, and has a visible event type. */
export const isVisibleTo = testStatement<{ id: string; accounts: readonly AccountId[] }>(`
  select from event_occurrence o
  where o.document_id = $id and o.account = any($accounts::uuid[])
    and o.event = any(${VISIBLE_TYPES('$accounts::uuid[]')})`)

const findOwner = rowStatement<RowOwner, { id: string }>('select account from event_occurrence where document_id = $id')

/** The owner of the event with this id. */
export const findEventOwner: FindOwner = (db, id) => findOwner(db, { id })

/** The event with this id. */
export const findEvent = rowStatement<StoredEvent, { id: string }>(
  `select ${stored.members()} from event_occurrence where document_id = $id`,
)
