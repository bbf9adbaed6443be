import { AUDIT_COLUMNS, type AuditRecord, toAuditValues } from '../audit/audit.store.ts'
import { buildQueueInsert, EVENT_COLUMNS, toEventValues } from '../event/event.store.ts'
import type { EventRecord } from '../event/event.ts'
import type { Database } from '../postgres/database.ts'
import { listArrays, listNames, transpose } from '../postgres/fragment.ts'
import { statement } from '../postgres/statement.ts'

/** What one request publishes. */
export interface Publications {
  events: readonly EventRecord[]
  /** Each event type with each account that it is published for, once. */
  pairs: readonly { event: string; account: string | null }[]
  auditEntries: readonly AuditRecord[]
}

const EVENT_NAMES = listNames(EVENT_COLUMNS)
const AUDIT_NAMES = listNames(AUDIT_COLUMNS)

/** The first placeholder of the audit entries, behind those of the events. */
const ENTRIES_AT = 5 + EVENT_COLUMNS.length

/** `item` is the number of the request; what belongs to a broken one is left out of every insert. */
const record = statement<{ broken: number[] }>(`
  with broken as materialized (
    select distinct x.item
    from unnest($1::int[], $2::text[], $3::uuid[]) as x (item, event, account)
    left join lateral (
      select t.account_scope from event t where t.internal = x.event and t.source = 'external' and t.is_actived offset 0
    ) t on true
    left join lateral (
      select a.document_id from account a where a.document_id = x.account and a.deleted_at is null offset 0
    ) a on true
    where t.account_scope is null or (x.account is not null
      and (t.account_scope = 'none' or (a.document_id is null and x.event not like '%.purge')))
  ),
  recorded as (
    insert into event_occurrence (${EVENT_NAMES})
    select ${EVENT_NAMES}
    from unnest($4::int[], ${listArrays(EVENT_COLUMNS, 5)}) as x (item, ${EVENT_NAMES})
    where x.item <> all(array(select item from broken))
    returning document_id
  ),
  queued as (${buildQueueInsert('recorded')}),
  entries as (
    insert into audit_log (${AUDIT_NAMES})
    select ${AUDIT_NAMES}
    from unnest($${ENTRIES_AT}::int[], ${listArrays(AUDIT_COLUMNS, ENTRIES_AT + 1)}) as x (item, ${AUDIT_NAMES})
    where x.item <> all(array(select item from broken))
  )
  select array(select item from broken) as broken`)

/**
 * Records the publications of several requests, in one statement: each request whole, or, where a rule of
 * `findPublicationErrors` is broken, not at all. Returns the numbers of those that are broken.
 */
export async function recordPublicationBatch(
  db: Database,
  items: readonly Publications[],
): Promise<ReadonlySet<number>> {
  const pairs = items.flatMap((one, item) => one.pairs.map((pair) => ({ ...pair, item })))
  const events = items.flatMap((one) => one.events)
  const entries = items.flatMap((one) => one.auditEntries)
  const [row] = await record(db, [
    pairs.map((pair) => pair.item),
    pairs.map((pair) => pair.event),
    pairs.map((pair) => pair.account),
    items.flatMap((one, item) => one.events.map(() => item)),
    ...transpose(EVENT_COLUMNS, events.map(toEventValues)),
    items.flatMap((one, item) => one.auditEntries.map(() => item)),
    ...transpose(AUDIT_COLUMNS, entries.map(toAuditValues)),
  ])
  return new Set(row?.broken)
}
