import { type NamedPart, type RoutedRows, routeInline } from '../../delivery/routing/routing.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { fragment, listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { soleRowStatement } from '../../postgres/statement/statement.ts'
import { buildQueueInsert, EVENT_COLUMNS, type EventRecord, toEventValues } from '../occurrence/event.store.ts'
import type { PublishedPair } from '../publish/publish.ts'
import {
  AUDIT_COLUMNS,
  type AuditRecord,
  isOfPublication,
  PUBLICATION_COLUMNS,
  toAuditValues,
  toPublicationValues,
} from './audit.store.ts'

/** Publications of one request. */
export interface Publications {
  events: readonly EventRecord[]
  /** The distinct pairs of event type and account. */
  pairs: readonly PublishedPair[]
  auditEntries: readonly AuditRecord[]
}

const COLUMNS = [...EVENT_COLUMNS, ...PUBLICATION_COLUMNS] as const

const EVENT_NAMES = listNames(COLUMNS)
const AUDIT_NAMES = listNames(AUDIT_COLUMNS)

/** Prefix of the parameters of audit entries, since events have columns of the same names. */
const ENTRY = 'entry_'

/**
 * `item`: the number of the request; rows of broken ones are omitted. `routed`: the events, as the router's parts read.
 */
const HEAD = `
  broken as materialized (
    select distinct x.item
    from unnest($pairItems::int[], $pairEvents::text[], $pairAccounts::uuid[], $areOfTenant::boolean[])
      as x (item, event, account, is_of_tenant)
    left join lateral (
      select t.account_scope, t.is_tenant_visible from event t where t.internal = x.event and t.source = 'external' and t.is_actived offset 0
    ) t on true
    left join lateral (
      select a.document_id from account a where a.document_id = x.account and a.deleted_at is null offset 0
    ) a on true
    where t.account_scope is null
      or (x.is_of_tenant and not (t.is_tenant_visible and t.account_scope = 'account'))
      or (x.account is not null
        and (t.account_scope = 'none' or (a.document_id is null and x.event not like '%.purge')))
  ),
  routed as materialized (
    select ${EVENT_NAMES}, nextval('recorded_ordinal') as ordinal, null::text as origin
    from unnest($eventItems::int[], ${listArrays(COLUMNS)}) as x (item, ${EVENT_NAMES})
    where x.item <> all(array(select item from broken))
  ),
  entries as (
    insert into audit_log (${AUDIT_NAMES})
    select ${AUDIT_NAMES}
    from unnest($entryItems::int[], ${listArrays(AUDIT_COLUMNS, ENTRY)}) as x (item, ${AUDIT_NAMES})
    where x.item <> all(array(select item from broken))
  )`

/** The head of a statement that also routes. */
const buildHead = fragment<Record<string, unknown[]>>('publications', HEAD)

const BROKEN = 'array(select item from broken) as broken'

/** Events that the statement routed itself have their time of routing; the others are queued for the router. */
const RECORDED = `
  recorded as (
    insert into event_occurrence (${EVENT_NAMES}, ordinal, routed_at)
    select ${EVENT_NAMES}, ordinal, case when (select is_inline from inline) then created_at end from routed
    returning document_id, routed_at
  ),
  queued as (${buildQueueInsert('recorded where routed_at is null')} returning event_id)`

const IS_QUEUED = 'exists (select from queued) as is_queued'

const record = soleRowStatement<{ broken: number[]; is_queued: boolean }, Record<string, unknown[]>>(
  `with ${HEAD}, inline as (select false as is_inline), ${RECORDED} select ${BROKEN}, ${IS_QUEUED}`,
)

/** Results of the publications of several requests. */
export interface RecordedPublications {
  /** The numbers of the requests that break a rule of `findPublicationErrors`: nothing of them is stored. */
  broken: ReadonlySet<number>
  /** Whether events wait for the router. */
  isQueued: boolean
}

/** Records the publications of several requests, in one statement: each request as a whole or not at all. */
export async function recordPublicationBatch(
  db: Database,
  items: readonly Publications[],
): Promise<RecordedPublications> {
  const { broken, is_queued: isQueued } = await record(db, listValues(items))
  return { broken: new Set(broken), isQueued }
}

/** Does so and routes the events in that statement, unless they have too many rows. */
export async function recordAndRoute(
  db: Database,
  items: readonly Publications[],
  policies: readonly NamedPart[],
): Promise<RecordedPublications & { byPolicy: RoutedRows[] }> {
  const { row, byPolicy } = await routeInline(
    db,
    buildHead(listValues(items)),
    policies,
    (parts, answers) =>
      `with ${[...parts, RECORDED].join(', ')}
       select ${[BROKEN, IS_QUEUED, ...answers].join(', ')}`,
  )
  return { broken: new Set(row.broken as number[]), isQueued: row.is_queued as boolean, byPolicy }
}

function listValues(items: readonly Publications[]): Record<string, unknown[]> {
  const pairs = items.flatMap((publication, item) => publication.pairs.map((pair) => ({ ...pair, item })))
  const placed = items.map(placeEntry)
  const events = placed.flatMap((item) => item.events)
  const entries = placed.flatMap((item) => item.others)
  return {
    pairItems: pairs.map((pair) => pair.item),
    pairEvents: pairs.map((pair) => pair.event),
    pairAccounts: pairs.map((pair) => pair.account),
    areOfTenant: pairs.map((pair) => pair.isOfTenant),
    eventItems: placed.flatMap((publication, item) => publication.events.map(() => item)),
    ...transpose(COLUMNS, events),
    entryItems: placed.flatMap((publication, item) => publication.others.map(() => item)),
    ...transpose(AUDIT_COLUMNS, entries.map(toAuditValues), ENTRY),
  }
}

/** The values of the events of a request, the first with its audit entry, and the entries with separate rows. */
function placeEntry({ events, auditEntries }: Publications): { events: unknown[][]; others: readonly AuditRecord[] } {
  const [entry, ...more] = auditEntries
  const kept = entry && more.length === 0 && isOfPublication(entry) ? entry : undefined
  return {
    events: events.map((event, index) => [
      ...toEventValues(event),
      ...toPublicationValues(index === 0 ? kept : undefined),
    ]),
    others: kept && events.length > 0 ? [] : auditEntries,
  }
}
