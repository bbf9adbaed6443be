import type { AuditRecord } from '../audit/audit.store.ts'
import { AUDIT_COLUMNS, listAuditColumns } from '../audit/audit.store.ts'
import { buildQueueInsert, EVENT_COLUMNS, listEventColumns } from '../event/event.store.ts'
import type { EventRecord } from '../event/event.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'

/** What one request publishes. */
export interface Publications {
  events: readonly EventRecord[]
  /** Each event type with each account that it is published for, once. */
  pairs: readonly { event: string; account: string | null }[]
  auditEntries: readonly AuditRecord[]
}

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
    insert into event_occurrence (${EVENT_COLUMNS})
    select ${EVENT_COLUMNS}
    from unnest($4::int[], $5::uuid[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[], $11::text[],
      $12::boolean[], $13::uuid[], $14::text[], $15::timestamptz[]) as x (item, ${EVENT_COLUMNS})
    where x.item <> all(array(select item from broken))
    returning document_id
  ),
  queued as (${buildQueueInsert('recorded')}),
  entries as (
    insert into audit_log (${AUDIT_COLUMNS})
    select ${AUDIT_COLUMNS}
    from unnest($16::int[], $17::uuid[], $18::text[], $19::text[], $20::uuid[], $21::uuid[], $22::uuid[], $23::uuid[],
      $24::uuid[], $25::text[], $26::text[], $27::jsonb[], $28::timestamptz[]) as x (item, ${AUDIT_COLUMNS})
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
    ...listEventColumns(events),
    items.flatMap((one, item) => one.auditEntries.map(() => item)),
    ...listAuditColumns(entries),
  ])
  return new Set(row?.broken)
}
