import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { SUBSCRIBERS_LIMIT } from './catalogue.schema.ts'
import { type EventTypeRecord, eventType } from './catalogue.store.ts'

export interface CatalogueSync {
  at: Date
  /** Null for a sync by a deployment or a command. */
  by: UserId | null
  written: number
  /** The version of the service that ran it. */
  version: string
}

/** A row of the `event` table, with the number of its subscribers. */
export interface CountedType extends EventTypeRecord {
  /** Among the first `SUBSCRIBERS_LIMIT` subscriptions; null for a type that was not counted. */
  subscribers: number | null
}

/** A deleted webhook keeps its subscriptions until it is purged. */
const COUNT = `(
  select count(*)::int from (
    select s.webhook from webhook_event s where s.event = e.document_id and s.deleted_at is null limit $limit
  ) link
  join webhook w on w.document_id = link.webhook and w.deleted_at is null
)`

interface StatusRow extends CountedType {
  synced_at: Date | null
  synced_by: UserId | null
  written: number | null
  version: string | null
}

const selectAll = statement<StatusRow, { generated: readonly string[]; limit: number }>(`
  select ${eventType.members('e')},
    case when e.source = 'external' or e.internal = any($generated) then null else ${COUNT} end as subscribers,
    l.synced_at, l.synced_by, l.written, l.version
  from event e left join catalogue_sync l on l.catalogue = 'event'
  order by e.internal`)

/** Every row of the `event` table by name, and the last sync. Subscribers are counted for stale ones. */
export async function readCatalogueRows(
  db: Database,
  generated: readonly string[],
): Promise<{ rows: CountedType[]; lastSync: CatalogueSync | null }> {
  const found = await selectAll(db, { generated, limit: SUBSCRIBERS_LIMIT })
  const { synced_at: at, synced_by: by, written, version } = found[0] ?? {}
  return {
    rows: found,
    lastSync: at ? { at, by: by ?? null, written: written ?? 0, version: version ?? '' } : null,
  }
}

/** Webhooks that subscribe to an event type, among its first `SUBSCRIBERS_LIMIT` subscriptions. */
interface SubscriberCount {
  document_id: string
  internal: string
  subscribers: number
}

const countAll = statement<SubscriberCount, { limit: number }>(`
  select e.document_id, e.internal, ${COUNT} as subscribers from event e order by e.internal`)

/** Counts the webhooks that subscribe to each event type, by name, in one database. */
export function countSubscribers(db: Database): Promise<SubscriberCount[]> {
  return countAll(db, { limit: SUBSCRIBERS_LIMIT })
}

const countOf = statement<SubscriberCount, { names: readonly string[]; limit: number }>(`
  select e.document_id, e.internal, ${COUNT} as subscribers
  from unnest($names::text[]) x (name)
  cross join lateral (select * from event y where y.internal = x.name offset 0) e`)

/** The same of these event types alone. */
export async function countSubscribersOf(db: Database, names: readonly string[]): Promise<SubscriberCount[]> {
  return names.length === 0 ? [] : countOf(db, { names, limit: SUBSCRIBERS_LIMIT })
}

/** Adds the counts of cells to those of home, up to the limit; event types that home does not have any more are left out. Pure. */
export function addSubscribers<Counted extends { internal: string; subscribers: number | null }>(
  home: readonly Counted[],
  cells: readonly (readonly SubscriberCount[])[],
): Counted[] {
  const sums = new Map<string, number>()
  for (const { internal, subscribers } of cells.flat()) sums.set(internal, (sums.get(internal) ?? 0) + subscribers)
  return home.map((counted) => ({
    ...counted,
    subscribers:
      counted.subscribers === null
        ? null
        : Math.min(SUBSCRIBERS_LIMIT, counted.subscribers + (sums.get(counted.internal) ?? 0)),
  }))
}
