import { sql } from 'kysely'
import type { EventId } from '../id.ts'
import type { Database } from '../postgres/database.ts'

/** A publisher's idempotency key and what it stands for. */
export interface PublishKey {
  key: string
  /** SHA-256 over what was published under it. */
  contentHash: Buffer
  eventId: EventId
}

/**
 * Takes those keys that nobody took since `expiredAt`, and returns them. A key that another transaction is taking right
 * now is waited for. They are taken in one order, so that two batches never wait for each other.
 */
export async function takePublishKeys(
  db: Database,
  input: { caller: string; keys: readonly PublishKey[]; expiredAt: Date; now: Date },
): Promise<Set<string>> {
  const { caller, keys, expiredAt, now } = input
  if (keys.length === 0) return new Set()
  const { rows } = await sql<{ key: string }>`
    insert into publish_key (caller, key, content_hash, event_id, created_at)
    select ${caller}, x.key, x.content_hash, x.event_id, ${now}
    from unnest(
      ${keys.map((one) => one.key)}::text[], ${keys.map((one) => one.contentHash)}::bytea[],
      ${keys.map((one) => one.eventId)}::uuid[]
    ) as x (key, content_hash, event_id)
    order by x.key collate "C"
    on conflict (caller, key) do update
      set content_hash = excluded.content_hash, event_id = excluded.event_id, created_at = excluded.created_at
      where publish_key.created_at <= ${expiredAt}
    returning key`.execute(db)
  return new Set(rows.map((row) => row.key))
}

/** What these keys of a caller stand for. */
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

/** Deletes up to `limit` keys taken at or before `before`, oldest first. Returns how many went. For maintenance. */
export async function deleteExpiredPublishKeys(db: Database, before: Date, limit: number): Promise<number> {
  const result = await sql`
    delete from publish_key where (caller, key) in (
      select caller, key from publish_key where created_at <= ${before} order by created_at limit ${limit}
      for update skip locked)`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}
