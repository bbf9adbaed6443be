import type { EventTypeId, IdMaker, UserId } from '../../base/id.ts'
import { VERSION } from '../../base/version.ts'
import type { AccountScope, RouteDeclaration } from '../../http/route/route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { type CatalogueEntry, isVisibleByDefault } from './catalogue.ts'

/** A row of the `event` table. */
export interface EventTypeRecord {
  id: EventTypeId
  internal: string
  accountScope: AccountScope
  method: RouteDeclaration['method'] | null
  route: string | null
  source: 'route' | 'synthetic' | 'external'
  description: string | null
  isActived: boolean
  /** Whether callers with an account role see it (docs/contract/identity.md#webhooks-of-an-account-role). */
  isTenantVisible: boolean
  createdAt: Date
  updatedAt: Date
}

/** The columns that `toEventTypeRecord` reads. */
export interface EventTypeColumns {
  document_id: string
  internal: string
  account_scope: string
  method: string | null
  route: string | null
  source: string
  description: string | null
  is_actived: boolean
  is_tenant_visible: boolean
  created_at: Date
  updated_at: Date
}

/** Maps a row of the `event` table. */
export function toEventTypeRecord(row: EventTypeColumns): EventTypeRecord {
  return {
    id: row.document_id as EventTypeId,
    internal: row.internal,
    accountScope: row.account_scope as AccountScope,
    method: row.method as EventTypeRecord['method'],
    route: row.route,
    source: row.source as EventTypeRecord['source'],
    description: row.description,
    isActived: row.is_actived,
    isTenantVisible: row.is_tenant_visible,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

const COLUMNS = [
  'document_id',
  'internal',
  'account_scope',
  'method',
  'route',
  'source',
  'description',
  'is_actived',
  'is_tenant_visible',
  'created_at',
  'updated_at',
] as const

/** The columns that `toEventTypeRecord` reads of the event type `alias`, as SQL. */
export function listEventTypeColumns(alias: string): string {
  return COLUMNS.map((column) => `${alias}.${column}`).join(', ')
}

const OF_TYPE = listEventTypeColumns('e')

/** The event types, as the base of a list; for a caller with an account role only those that it sees. */
export function selectEventTypes(db: Database, scope: PermissionScope) {
  const all = db.selectFrom('event').select(COLUMNS)
  return scope === 'all' ? all : all.where('account_scope', '=', 'account').where('is_tenant_visible', '=', true)
}

const selectOne = statement<EventTypeColumns, { id: string }>(
  `select ${OF_TYPE} from event e where e.document_id = $id`,
)

/** The row with this id. */
export async function findEventType(db: Database, id: string): Promise<EventTypeRecord | undefined> {
  const [row] = await selectOne(db, { id })
  return row && toEventTypeRecord(row)
}

const selectNamed = statement<EventTypeColumns, { names: readonly string[] }>(
  `select ${OF_TYPE} from event e where e.internal = any($names)`,
)

/** The rows with these names. */
export async function findEventTypesByName(db: Database, names: readonly string[]): Promise<EventTypeRecord[]> {
  return (await selectNamed(db, { names })).map(toEventTypeRecord)
}

/** The columns that a generated entry is written with, in the order of `syncEntries`. */
const ENTRY_COLUMNS = [
  ['document_id', 'uuid'],
  ['internal', 'text'],
  ['account_scope', 'text'],
  ['method', 'text'],
  ['route', 'text'],
  ['source', 'text'],
  ['description', 'text'],
  ['is_tenant_visible', 'boolean'],
] as const

/** The columns that are the code's to change. */
const GENERATED = ['account_scope', 'method', 'route', 'source', 'description']
const of = (alias: string) => GENERATED.map((column) => `${alias}.${column}`).join(', ')

const sync = statement<EventTypeColumns & { is_written: boolean }, { now: Date; by: UserId | null; version: string }>(`
  with w as (
    insert into event as e (${listNames(ENTRY_COLUMNS)}, created_at, updated_at)
    select x.*, $now, $now from unnest(${listArrays(ENTRY_COLUMNS)}) as x
    on conflict (internal) do update
    set ${GENERATED.map((column) => `${column} = excluded.${column}`).join(', ')}, updated_at = $now
    where (${of('e')}) is distinct from (${of('excluded')})
    returning ${OF_TYPE}
  ), noted as (
    insert into catalogue_sync (catalogue, synced_at, synced_by, written, version)
    select 'event', $now, $by::uuid, count(*), $version from w
    on conflict (catalogue) do update
    set synced_at = excluded.synced_at, synced_by = excluded.synced_by, written = excluded.written, version = excluded.version
  )
  select ${OF_TYPE}, false as is_written from event e where not exists (select from w where w.internal = e.internal)
  union all select w.*, true from w order by internal`)

/**
 * Upserts generated entries that are new or changed, and records that it did. Returns every row of the table behind that, by
 * name, and the number of written ones. A row that another process inserted at the same time is left out.
 */
export async function syncEntries(
  db: Database,
  ids: IdMaker,
  entries: readonly CatalogueEntry[],
  { now, by }: { now: Date; by: UserId | null },
): Promise<{ rows: EventTypeRecord[]; written: number }> {
  const values = entries.map((one) => [
    ids.next<'event type'>(),
    one.internal,
    one.account_scope,
    one.method,
    one.route,
    one.source,
    one.description,
    // Of a new row only: afterwards the mark is the administrator's.
    isVisibleByDefault(one),
  ])
  const rows = await sync(db, { ...transpose(ENTRY_COLUMNS, values), now, by, version: VERSION })
  return { rows: rows.map(toEventTypeRecord), written: rows.filter((row) => row.is_written).length }
}

/** Inserts an event type that another service owns (docs/contract/events.md#publishing-from-outside). Undefined when the name is taken. */
export async function insertExternalEventType(
  db: Database,
  row: Pick<EventTypeRecord, 'id' | 'internal' | 'accountScope' | 'description' | 'isTenantVisible'> & { now: Date },
): Promise<EventTypeRecord | undefined> {
  const inserted = await db
    .insertInto('event')
    .values({
      document_id: row.id,
      internal: row.internal,
      account_scope: row.accountScope,
      source: 'external',
      is_tenant_visible: row.isTenantVisible,
      description: row.description,
      created_at: row.now,
      updated_at: row.now,
    })
    .onConflict((conflict) => conflict.column('internal').doNothing())
    .returning(COLUMNS)
    .executeTakeFirst()
  return inserted && toEventTypeRecord(inserted)
}

const setActive = statement<EventTypeColumns, { id: string; isActived: boolean; now: Date; kept: readonly string[] }>(`
  update event e set is_actived = $isActived, updated_at = $now
  where e.document_id = $id and e.is_actived <> $isActived and ($isActived or not e.internal = any($kept))
  returning ${OF_TYPE}`)

/**
 * Activates or deactivates an event type for subscriptions and routing. Undefined when there is none with this id, when it
 * has the state already, or when it would deactivate one of the names `kept`.
 */
export async function setActiveIfDifferent(
  db: Database,
  id: string,
  change: { isActived: boolean; kept: readonly string[]; now: Date },
): Promise<EventTypeRecord | undefined> {
  const [row] = await setActive(db, { id, ...change })
  return row && toEventTypeRecord(row)
}

const setVisible = statement<EventTypeColumns, { id: string; isTenantVisible: boolean; now: Date }>(`
  update event e set is_tenant_visible = $isTenantVisible, updated_at = $now
  where e.document_id = $id and e.is_tenant_visible <> $isTenantVisible returning ${OF_TYPE}`)

/** Marks an event type as visible to account roles, or not. Undefined when there is none, or when nothing differs. */
export async function setVisibleIfDifferent(
  db: Database,
  id: string,
  change: { isTenantVisible: boolean; now: Date },
): Promise<EventTypeRecord | undefined> {
  const [row] = await setVisible(db, { id, ...change })
  return row && toEventTypeRecord(row)
}
