import type { Database } from '../../postgres/statement/database.ts'
import { listNames } from '../../postgres/statement/fragment.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { AUDIT_COLUMNS } from './audit.store.ts'

const AUDIT_NAMES = listNames(AUDIT_COLUMNS)

const deleteEvents = statement<{ deleted: number }, { before: Date; limit: number; auditBefore: Date }>(`
  with old as materialized (
    select e.document_id from event_occurrence e
    where e.created_at < $before and e.routed_at is not null
      and not exists (select from webhook_dispatch d where d.event_id = e.document_id)
    order by e.created_at limit $limit for update skip locked
  ), kept as (
    insert into audit_log (${AUDIT_NAMES})
    select ${AUDIT_NAMES} from audit_publication
    where document_id = any(array(select document_id from old)) and created_at >= $auditBefore
  ), forgotten as (
    delete from event_outbox where event_id = any(array(select document_id from old))
  ), gone as (
    delete from event_occurrence where document_id = any(array(select document_id from old)) returning 1
  )
  select count(*)::int as deleted from gone`)

/**
 * Deletes up to `limit` events older than `before` that no ledger row refers to (docs/contract/delivery.md#retention).
 * The audit entries in their rows that are not older than `auditBefore` become rows of `audit_log`. Those that the event log
 * did not take until then leave its outbox, which is so bounded by the retention. Returns the number of deleted events.
 */
export async function deleteOldEvents(
  db: Database,
  { before, auditBefore, limit }: { before: Date; auditBefore: Date; limit: number },
): Promise<number> {
  const [row] = await deleteEvents(db, { before, limit, auditBefore })
  return row?.deleted ?? 0
}
