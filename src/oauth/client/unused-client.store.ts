import { sweepStatement } from '../../postgres/retention.ts'

/**
 * Deletes up to `limit` clients that registered themselves before `before` and never had a grant. Returns their number.
 * A grant in progress locks its client (foreign key), so that a client in use is skipped or waited for.
 */
export const deleteUnusedClients = sweepStatement(`
  with old as materialized (
    select c.document_id from oauth_client c
    where c.registration = 'dynamic' and c.created_at < $before
      and not exists (select from oauth_grant g where g.client = c.document_id)
    order by c.created_at limit $limit for update skip locked
  ), secrets as (
    delete from oauth_client_secret where client = any(array(select document_id from old))
  )
  delete from oauth_client where document_id = any(array(select document_id from old))`)
