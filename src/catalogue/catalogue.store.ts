import { sql } from 'kysely'
import type { AccountScope } from '../http/route.ts'
import type { EventTypeId, IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { CatalogueEntry } from './catalogue.ts'

/** A row of the `event` table. */
export interface EventTypeRecord {
  id: EventTypeId
  internal: string
  accountScope: AccountScope
  method: string | null
  route: string | null
  source: 'route' | 'synthetic' | 'external'
  description: string | null
  isActived: boolean
  createdAt: Date
  updatedAt: Date
}

interface EventTypeColumns {
  document_id: string
  internal: string
  account_scope: string
  method: string | null
  route: string | null
  source: string
  description: string | null
  is_actived: boolean
  created_at: Date
  updated_at: Date
}

/** Maps a row of the `event` table. */
export function toEventTypeRecord(row: EventTypeColumns): EventTypeRecord {
  return {
    id: row.document_id as EventTypeId,
    internal: row.internal,
    accountScope: row.account_scope as AccountScope,
    method: row.method,
    route: row.route,
    source: row.source as EventTypeRecord['source'],
    description: row.description,
    isActived: row.is_actived,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The event types, as the base of a list. */
export function selectEventTypes(db: Database) {
  return db.selectFrom('event')
}

/** Every row of the `event` table, by name. A few hundred at most. */
export async function listEventTypes(db: Database): Promise<EventTypeRecord[]> {
  const rows = await db.selectFrom('event').selectAll().orderBy('internal').execute()
  return rows.map(toEventTypeRecord)
}

/** The row with this id; `lock` keeps it from changing until the transaction ends. */
export async function findEventType(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<EventTypeRecord | undefined> {
  let query = db.selectFrom('event').selectAll().where('document_id', '=', id)
  if (options.lock) query = query.forNoKeyUpdate()
  const row = await query.executeTakeFirst()
  return row && toEventTypeRecord(row)
}

/** The rows with these ids, in no order. */
export async function findEventTypes(db: Database, ids: readonly string[]): Promise<EventTypeRecord[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('event').selectAll().where('document_id', 'in', ids).execute()
  return rows.map(toEventTypeRecord)
}

/** The rows with these names. */
export async function findEventTypesByName(db: Database, names: readonly string[]): Promise<EventTypeRecord[]> {
  if (names.length === 0) return []
  const rows = await db.selectFrom('event').selectAll().where('internal', 'in', names).execute()
  return rows.map(toEventTypeRecord)
}

/** Writes generated entries: new ones are inserted, changed ones updated, equal ones left alone. Returns how many were written. */
export async function upsertEntries(
  db: Database,
  ids: IdMaker,
  entries: readonly CatalogueEntry[],
  now: Date,
): Promise<number> {
  const result = await db
    .insertInto('event')
    .values(
      entries.map((entry) => ({ document_id: ids.next<'event type'>(), ...entry, created_at: now, updated_at: now })),
    )
    .onConflict((conflict) =>
      conflict
        .column('internal')
        .doUpdateSet((eb) => ({
          account_scope: eb.ref('excluded.account_scope'),
          method: eb.ref('excluded.method'),
          route: eb.ref('excluded.route'),
          source: eb.ref('excluded.source'),
          description: eb.ref('excluded.description'),
          updated_at: eb.ref('excluded.updated_at'),
        }))
        .where(
          sql<boolean>`(event.account_scope, event.method, event.route, event.source, event.description) is distinct from
            (excluded.account_scope, excluded.method, excluded.route, excluded.source, excluded.description)`,
        ),
    )
    .executeTakeFirst()
  return Number(result.numInsertedOrUpdatedRows ?? 0)
}

/** Inserts an event type that another service owns (docs/contract/events.md#publishing-from-outside). Undefined when the name is taken. */
export async function insertExternalEventType(
  db: Database,
  row: { id: EventTypeId; internal: string; accountScope: AccountScope; description: string | null; now: Date },
): Promise<EventTypeRecord | undefined> {
  const inserted = await db
    .insertInto('event')
    .values({
      document_id: row.id,
      internal: row.internal,
      account_scope: row.accountScope,
      source: 'external',
      description: row.description,
      created_at: row.now,
      updated_at: row.now,
    })
    .onConflict((conflict) => conflict.column('internal').doNothing())
    .returningAll()
    .executeTakeFirst()
  return inserted && toEventTypeRecord(inserted)
}

/** Switches an event type on or off for subscriptions and routing. */
export async function updateEventTypeActive(
  db: Database,
  id: EventTypeId,
  isActived: boolean,
  now: Date,
): Promise<EventTypeRecord> {
  const row = await db
    .updateTable('event')
    .set({ is_actived: isActived, updated_at: now })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toEventTypeRecord(row)
}
