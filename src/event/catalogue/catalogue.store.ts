import type { IdMaker, UserId } from '../../base/id.ts'
import { VERSION } from '../../base/version.ts'
import type { RouteDeclaration } from '../../http/route/route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'
import { EventTypeRow } from './catalogue.schema.ts'
import { type CatalogueEntry, isVisibleByDefault } from './catalogue.ts'
import { buildExample, type EventExample } from './example.ts'

/** An event type: every column that the API shows. */
export const eventType = defineRecord('event', columnsOf(EventTypeRow)).typed<{
  method: RouteDeclaration['method'] | null
  example: EventExample | null
}>()
export type EventTypeRecord = RecordOf<typeof eventType>

export const toEventTypeRow = wireOf(eventType, EventTypeRow)

/** The event types, as the base of a list; for a caller with an account role only the visible ones. */
export function selectEventTypes(db: Database, scope: PermissionScope) {
  const all = selectRecord(db.selectFrom('event'), eventType)
  return scope === 'all' ? all : all.where('account_scope', '=', 'account').where('is_tenant_visible', '=', true)
}

/** The row with this id. */
export const findEventType = rowStatement<EventTypeRecord, { id: string }>(
  `select ${eventType.members('e')} from event e where e.document_id = $id`,
)

/** The rows with these names. */
export const findEventTypesByName = statement<EventTypeRecord, { names: readonly string[] }>(
  `select ${eventType.members('e')} from event e where e.internal = any($names)`,
)

const ENTRY_COLUMNS = [
  ['document_id', 'uuid'],
  ['internal', 'text'],
  ['account_scope', 'text'],
  ['method', 'text'],
  ['route', 'text'],
  ['source', 'text'],
  ['description', 'text'],
  ['is_tenant_visible', 'boolean'],
  ['"group"', 'text'],
  ['deprecated_at', 'timestamptz'],
  ['deprecation_remedy', 'text'],
  ['example', 'jsonb'],
] as const

const GENERATED = [
  ...['account_scope', 'method', 'route', 'source', 'description'],
  ...['"group"', 'deprecated_at', 'deprecation_remedy', 'example'],
]
const of = (alias: string) => GENERATED.map((column) => `${alias}.${column}`).join(', ')

const sync = statement<EventTypeRecord & { isWritten: boolean }, { now: Date; by: UserId | null; version: string }>(`
  with w as (
    insert into event as e (${listNames(ENTRY_COLUMNS)}, created_at, updated_at)
    select x.*, $now, $now from unnest(${listArrays(ENTRY_COLUMNS)}) as x
    on conflict (internal) do update
    set ${GENERATED.map((column) => `${column} = excluded.${column}`).join(', ')}, updated_at = $now
    where (${of('e')}) is distinct from (${of('excluded')})
    returning ${eventType.select('e')}
  ), noted as (
    insert into catalogue_sync (catalogue, synced_at, synced_by, written, version)
    select 'event', $now, $by::uuid, count(*), $version from w
    on conflict (catalogue) do update
    set synced_at = excluded.synced_at, synced_by = excluded.synced_by, written = excluded.written, version = excluded.version
  )
  select ${eventType.members('e')}, false as "isWritten" from event e where not exists (select from w where w.internal = e.internal)
  union all select ${eventType.members('w')}, true from w order by internal`)

/** Upserts new and changed entries, and records the sync. Returns all rows by name, and the number of written ones. */
export async function syncEntries(
  db: Database,
  ids: IdMaker,
  entries: readonly CatalogueEntry[],
  { now, by }: { now: Date; by: UserId | null },
): Promise<{ rows: EventTypeRecord[]; written: number }> {
  const values = entries.map((entry) => [
    ids.next<'event type'>(),
    entry.internal,
    entry.account_scope,
    entry.method,
    entry.route,
    entry.source,
    entry.description,
    // For a new row only: afterwards an administrator sets the mark.
    isVisibleByDefault(entry),
    entry.group,
    entry.deprecated_at,
    entry.deprecation_remedy,
    JSON.stringify(
      buildExample({ internal: entry.internal, accountScope: entry.account_scope, readPath: entry.read_path }),
    ),
  ])
  const rows = await sync(db, { ...transpose(ENTRY_COLUMNS, values), now, by, version: VERSION })
  return { rows, written: rows.filter((row) => row.isWritten).length }
}

type NewExternalType = Pick<
  EventTypeRecord,
  'id' | 'internal' | 'accountScope' | 'description' | 'isTenantVisible' | 'group'
> & { now: Date }

const insertExternal = rowStatement<EventTypeRecord, NewExternalType & { example: string }>(`
  insert into event as e (document_id, internal, account_scope, source, is_tenant_visible, description, "group", example,
    created_at, updated_at)
  values ($id, $internal, $accountScope, 'external', $isTenantVisible, $description, $group, $example::jsonb, $now, $now)
  on conflict (internal) do nothing returning ${eventType.members('e')}`)

/** Inserts an event type that another service owns (docs/contract/events.md#publishing-from-outside). Undefined when the name is taken. */
export function insertExternalEventType(db: Database, row: NewExternalType): Promise<EventTypeRecord | undefined> {
  const example = JSON.stringify(buildExample({ ...row, readPath: null }))
  return insertExternal(db, { ...row, example })
}

/** Activates or deactivates an event type. Undefined for an unknown, an unchanged, or a `kept` one. */
export const setActiveIfDifferent = rowStatement<
  EventTypeRecord,
  { id: string; isActived: boolean; now: Date; kept: readonly string[] }
>(`
  update event e set is_actived = $isActived, updated_at = $now
  where e.document_id = $id and e.is_actived <> $isActived and ($isActived or not e.internal = any($kept))
  returning ${eventType.members('e')}`)

/** Marks an event type as visible to account roles, or not. Undefined for an unknown or unchanged one. */
export const setVisibleIfDifferent = rowStatement<
  EventTypeRecord,
  { id: string; isTenantVisible: boolean; now: Date }
>(`
  update event e set is_tenant_visible = $isTenantVisible, updated_at = $now
  where e.document_id = $id and e.is_tenant_visible <> $isTenantVisible returning ${eventType.members('e')}`)

/** The row with this id, locked until the transaction ends. */
export const lockEventType = rowStatement<EventTypeRecord, { id: string }>(
  `select ${eventType.members('e')} from event e where e.document_id = $id for update`,
)

/** The described members of an external event type. */
export type EventTypeText = Pick<EventTypeRecord, 'description' | 'group' | 'deprecatedAt' | 'deprecationRemedy'>

const describe = closingStatement<EventTypeText & { id: string; now: Date }>(`
  described_type as (
    update event set description = $description::text, "group" = $group::text,
      deprecated_at = $deprecatedAt::timestamptz, deprecation_remedy = $deprecationRemedy::text,
      updated_at = $now::timestamptz
    where document_id = $id::uuid)`)

/** Replaces the described members of a locked event type, with the last statement of the transaction. */
export async function describeEventType(
  db: Database,
  before: EventTypeRecord,
  text: EventTypeText,
  now: Date,
): Promise<EventTypeRecord> {
  await describe(db, { ...text, id: before.id, now })
  return { ...before, ...text, updatedAt: now }
}
