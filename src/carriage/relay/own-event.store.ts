import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

const selectOwn = statement<{ id: string; createdAt: Date }, { ids: readonly string[] }>(`
  select e.id, e."createdAt" from unnest($ids::uuid[]) as x (id) cross join lateral (
    select o.document_id as id, o.created_at as "createdAt", o.origin from event_occurrence o
    where o.document_id = x.id offset 0
  ) e where e.origin is null`)

/** Of these events those that this database has recorded itself and keeps, with the time. */
export async function findOwnEvents(db: Database, ids: readonly string[]): Promise<Map<string, Date>> {
  return new Map((await selectOwn(db, { ids })).map(({ id, createdAt }) => [id, createdAt]))
}
