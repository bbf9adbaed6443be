import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement } from '../../postgres/statement/statement.ts'

/** A grant in progress locks its client (foreign key), so that a client in use is skipped or waited for. */
const remove = changeStatement<{ before: Date; limit: number }>(`
  with old as materialized (
    select c.document_id from oauth_client c
    where c.registration = 'dynamic' and c.created_at < $before
      and not exists (select from oauth_grant g where g.client = c.document_id)
    order by c.created_at limit $limit for update skip locked
  ), secrets as (
    delete from oauth_client_secret where client = any(array(select document_id from old))
  )
  delete from oauth_client where document_id = any(array(select document_id from old))`)

/**
 * Deletes up to `limit` clients that registered themselves before `before` and never had a grant. Returns their number.
 * For maintenance.
 */
export async function deleteUnusedClients(db: Database, before: Date, limit: number): Promise<number> {
  return remove(db, { before, limit })
}
