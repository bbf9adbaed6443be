import {
  type OwnEdges,
  toEdgeColumns,
  toWalkPage,
  WALK_RESULT,
  type WalkPage,
  type WalkParams,
  type WalkRow,
  walkPage,
} from '../../postgres/own-retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listNames } from '../../postgres/statement/fragment.ts'
import { soleRowStatement, valueStatement } from '../../postgres/statement/statement.ts'
import { AUDIT_COLUMNS } from './audit.store.ts'

const AUDIT_NAMES = listNames(AUDIT_COLUMNS)

/** Whether nothing needs the event `e` any longer. */
const IS_DONE = `e.routed_at is not null
      and not exists (select from webhook_dispatch d where d.event_id = e.document_id)`

const deleteSelected = (old: string, { parts = '', result = '' } = {}) => `
  with ${parts && `${parts},`} old as materialized (${old}), kept as (
    insert into audit_log (${AUDIT_NAMES})
    select ${AUDIT_NAMES} from audit_publication
    where document_id = any(array(select document_id from old)) and created_at >= $auditBefore
  ), forgotten as (
    delete from event_outbox where event_id = any(array(select document_id from old))
  ), gone as (
    delete from event_occurrence where document_id = any(array(select document_id from old)) returning 1
  )
  select count(*)::int as deleted${result && `, ${result}`} from gone`

/**
 * Deletes up to `limit` events older than `before` that no ledger row refers to (docs/contract/delivery.md#retention).
 * The audit entries in their rows that are not older than `auditBefore` become rows of `audit_log`. Those that the event log
 * did not take until then leave its outbox, which is so bounded by the retention. Returns the number of deleted events.
 */
export const deleteOldEvents = valueStatement<number, { before: Date; limit: number; auditBefore: Date }>(
  deleteSelected(`
    select e.document_id from event_occurrence e
    where e.created_at < $before and ${IS_DONE}
    order by e.created_at limit $limit for update skip locked`),
)

/** Deletes such events of a page of a walk, but those of accounts that keep longer. Counts them. */
export const deletePassedEvents = soleRowStatement<
  { deleted: number } & WalkRow,
  WalkParams & { auditBefore: Date },
  WalkPage
>(
  deleteSelected(
    `
    select e.document_id from event_occurrence e
    where e.document_id = any(array(select document_id from passed)) and e.created_at < $before and ${IS_DONE}
    for update skip locked`,
    { parts: walkPage('event_occurrence'), result: WALK_RESULT },
  ),
  (row) => toWalkPage(row, [row.deleted]),
)

const deleteOwn = valueStatement<
  number,
  { accounts: readonly string[]; edges: readonly Date[]; limit: number; auditBefore: Date }
>(
  deleteSelected(`
    select e.document_id from unnest($accounts::uuid[], $edges::timestamptz[]) as o (account, edge)
    cross join lateral (
      select e.document_id from event_occurrence e
      where e.account = o.account and e.created_at < o.edge and ${IS_DONE}
      order by e.created_at limit $limit for update skip locked) e
    limit $limit`),
)

/** Deletes such events of the accounts with a retention of their own. Returns their number. */
export function deleteOwnEvents(
  db: Database,
  { own, auditBefore, limit }: { own: OwnEdges['own']; auditBefore: Date; limit: number },
): Promise<number> {
  return deleteOwn(db, { ...toEdgeColumns(own), auditBefore, limit })
}
