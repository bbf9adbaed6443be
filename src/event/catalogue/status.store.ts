import type { AccountId, UserId } from '../../base/id.ts'
import type { MergedReads } from '../../http/listing/merge.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { SUBSCRIBERS_LIMIT } from './catalogue.schema.ts'
import { type EventTypeRecord, eventType } from './catalogue.store.ts'

/** The last sync of the catalogue. */
export interface CatalogueSync {
  at: Date
  /** Null for a sync by a deployment or a command. */
  by: UserId | null
  /** Number of written rows. */
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
const countWebhooks = (condition: string) => `(
  select count(*)::int from (
    select s.webhook from webhook_event s where s.event = e.document_id and s.deleted_at is null limit $limit
  ) link
  join webhook w on w.document_id = link.webhook and ${condition}
)`

const COUNT = countWebhooks('w.deleted_at is null')

interface StatusRow extends EventTypeRecord {
  subscribers: number | null
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

/**
 * Every row of the `event` table by name, a few hundred at most, and the last sync. Subscribers are counted for stale
 * ones: neither in the names `generated` nor external.
 */
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

interface SubscriberCount {
  document_id: string
  internal: string
  subscribers: number
}

const selectCounts = (count: string) => `
  select e.document_id, e.internal, ${count} as subscribers from event e order by e.internal`

const countAll = statement<SubscriberCount, { limit: number }>(selectCounts(COUNT))

/** Number of webhooks that subscribe to each event type, by name, among its first `SUBSCRIBERS_LIMIT` subscriptions. */
export function countSubscribers(db: Database): Promise<SubscriberCount[]> {
  return countAll(db, { limit: SUBSCRIBERS_LIMIT })
}

const countHere = statement<SubscriberCount, { limit: number; elsewhere: readonly AccountId[] }>(
  selectCounts(
    countWebhooks('w.deleted_at is null and (not w.is_global and w.account = any($elsewhere::uuid[])) is not true'),
  ),
)

/** The sums of all databases, for the event types of home, up to `SUBSCRIBERS_LIMIT`. */
export async function countSubscribersOfAll(reads: MergedReads): Promise<SubscriberCount[]> {
  const answers = await reads.ask(({ db, elsewhere }) => countHere(db, { limit: SUBSCRIBERS_LIMIT, elsewhere }))
  const ofHome = answers.at(-1) ?? []
  const sums = new Map<string, number>()
  for (const { document_id: id, subscribers } of answers.flat()) sums.set(id, (sums.get(id) ?? 0) + subscribers)
  return ofHome.map((type) => ({
    ...type,
    subscribers: Math.min(sums.get(type.document_id) ?? 0, SUBSCRIBERS_LIMIT),
  }))
}
