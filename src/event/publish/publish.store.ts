import type { AccountId, EventId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, soleRowStatement } from '../../postgres/statement/statement.ts'
import type { EventTypeRecord } from '../catalogue/catalogue.store.ts'
import type { EventRecord } from '../occurrence/event.store.ts'

/** A publisher's idempotency key with its event. */
export interface PublishKey {
  key: string
  /** SHA-256 of the publication under it. */
  contentHash: Buffer
  eventId: EventId
}

export interface PublishContext {
  eventTypes: ReadonlyMap<string, PublishedType>
  accounts: ReadonlySet<string>
}

/** Facts of an event type for the rules of publication. */
export type PublishedType = Pick<
  EventTypeRecord,
  'internal' | 'source' | 'accountScope' | 'isActived' | 'isTenantVisible'
>

/** Facts for the rules: the event types with these names and the existing accounts among these. */
const READ_CONTEXT = `
  array(select json_build_object('internal', internal, 'source', source, 'accountScope', account_scope,
    'isActived', is_actived, 'isTenantVisible', is_tenant_visible) from event where internal = any($names)) as types,
  array(select document_id from account where document_id = any($accounts) and deleted_at is null) as accounts`

interface ContextRow {
  types: PublishedType[]
  accounts: AccountId[]
}

interface Asked {
  names: readonly string[]
  accounts: readonly string[]
}

const toContext = ({ types, accounts }: ContextRow): PublishContext => ({
  eventTypes: new Map(types.map((type) => [type.internal, type])),
  accounts: new Set(accounts),
})

/** Reads the facts for the checks of publications. */
export const readPublishContext = soleRowStatement<ContextRow, Asked, PublishContext>(
  `select ${READ_CONTEXT}`,
  toContext,
)

const record = soleRowStatement<
  ContextRow & { taken: EventId[] },
  Asked & {
    caller: string
    keys: readonly string[]
    contentHashes: readonly Buffer[]
    eventsOfKeys: readonly EventId[]
    ids: readonly EventId[]
    types: readonly string[]
    accountsOfEvents: readonly (AccountId | null)[]
    resources: readonly string[]
    actions: readonly string[]
    resourceIds: readonly (string | null)[]
    urls: readonly (string | null)[]
    arePurges: readonly boolean[]
    traces: readonly (string | null)[]
    areKeyed: readonly boolean[]
    expiredAt: Date
    now: Date
  }
>(`
  with taken as (
    insert into publish_key (caller, key, content_hash, event_id, created_at)
    select $caller, x.key, x.content_hash, x.event_id, $now
    from unnest($keys::text[], $contentHashes::bytea[], $eventsOfKeys::uuid[]) as x (key, content_hash, event_id)
    order by x.key collate "C"
    on conflict (caller, key) do update
      set content_hash = excluded.content_hash, event_id = excluded.event_id, created_at = excluded.created_at
      where publish_key.created_at <= $expiredAt
    returning event_id
  ), recorded as (
    insert into event_occurrence (document_id, event, account, resource, action, resource_id, url, is_purge,
      trace_context, created_at)
    select x.id, x.event, x.account, x.resource, x.action, x.resource_id, x.url, x.is_purge, x.trace, $now
    from unnest($ids::uuid[], $types::text[], $accountsOfEvents::uuid[], $resources::text[], $actions::text[],
      $resourceIds::text[], $urls::text[], $arePurges::boolean[], $traces::text[], $areKeyed::boolean[])
      as x (id, event, account, resource, action, resource_id, url, is_purge, trace, is_keyed)
    left join taken on taken.event_id = x.id
    where taken.event_id is not null or not x.is_keyed
    returning document_id
  ), queued as (insert into event_queue select document_id from recorded)
  select array(select event_id from taken) as taken, ${READ_CONTEXT}`)

/**
 * Records events with their keys, and reads the facts for the rules, in one statement: the caller checks afterwards and
 * throws for a broken rule, which rolls back. A key is taken if it is unused since `expiredAt`; the event of another
 * key is not recorded. The statement waits for a key of a concurrent transaction. Keys are locked in one order, so that
 * two batches cannot deadlock.
 */
export async function recordPublications(
  db: Database,
  input: {
    caller: string
    keys: readonly PublishKey[]
    events: readonly EventRecord[]
    asked: Asked
    expiredAt: Date
    now: Date
  },
): Promise<PublishContext & { taken: ReadonlySet<EventId> }> {
  const { caller, keys, events, asked, expiredAt, now } = input
  const keyed = new Set(keys.map((key) => key.eventId))
  const column = <Value>(pick: (event: EventRecord) => Value) => events.map(pick)
  const { taken, ...context } = await record(db, {
    ...asked,
    caller,
    keys: keys.map((key) => key.key),
    contentHashes: keys.map((key) => key.contentHash),
    eventsOfKeys: keys.map((key) => key.eventId),
    ids: column((event) => event.id),
    types: column((event) => event.type),
    accountsOfEvents: column((event) => event.account),
    resources: column((event) => event.resource),
    actions: column((event) => event.action),
    resourceIds: column((event) => event.resourceId),
    urls: column((event) => event.url),
    arePurges: column((event) => event.isPurge),
    traces: column((event) => event.trace),
    areKeyed: column((event) => keyed.has(event.id)),
    expiredAt,
    now,
  })
  return { ...toContext(context), taken: new Set(taken) }
}

/** Publications under these idempotency keys of a caller. */
export async function listPublishKeys(db: Database, caller: string, keys: readonly string[]): Promise<PublishKey[]> {
  if (keys.length === 0) return []
  const rows = await db
    .selectFrom('publish_key')
    .select(['key', 'content_hash', 'event_id'])
    .where('caller', '=', caller)
    .where((eb) => eb('key', '=', eb.fn.any(eb.val([...keys]))))
    .execute()
  return rows.map((row) => ({ key: row.key, contentHash: row.content_hash, eventId: row.event_id as EventId }))
}

const deleteExpired = changeStatement<{ before: Date; limit: number }>(`
  delete from publish_key where ctid = any(array(
    select ctid from publish_key where created_at <= $before order by created_at limit $limit
    for update skip locked))`)

/** Deletes up to `limit` keys taken at or before `before`, oldest first. Returns their number. For maintenance. */
export function deleteExpiredPublishKeys(db: Database, before: Date, limit: number): Promise<number> {
  return deleteExpired(db, { before, limit })
}
