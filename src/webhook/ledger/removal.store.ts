import type { WebhookId } from '../../base/id.ts'
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
import { closingStatement, rowStatement, soleRowStatement, valueStatement } from '../../postgres/statement/statement.ts'
import { cameInto, countChanges, findShard, leftFrom, REMOVAL_SHARD } from '../delivery/delivery-count.store.ts'
import { type WebhookRecord, webhook } from '../registry/webhook.store.ts'

/** Maximum number of rows cancelled by a deletion, so that it is quick; the sweeps cancel the rest. */
const CANCELLED_AT_ONCE = 10_000

/** The parts of a statement that end the open rows of `ids` as cancelled, and count them on shard `$shard`. */
const cancel = (ids: string) => `
    cancelled as (
      delete from webhook_dispatch_open where document_id = any(array(${ids})) returning *
    ), kept as (
      insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, last_error,
        last_attempt_at, last_status_code, last_duration_ms, delivered_at, ended_at, is_test, attempt_trigger,
        replay_job, fence, created_at, updated_at)
      select document_id, webhook, event_id, event, account, 'cancelled', attempts, last_error, last_attempt_at,
        last_status_code, last_duration_ms, delivered_at, $now, is_test, attempt_trigger, replay_job, fence,
        created_at, $now
      from cancelled
    ), counted as (${countChanges([cameInto('cancelled', `'cancelled'`), leftFrom('cancelled')], '$shard')})`

interface CancelParams {
  now: Date
  shard: number
}

const cancelWaiting = closingStatement<CancelParams & { webhook: WebhookId }>(
  cancel(`
  select document_id from webhook_dispatch_open
  where webhook = $webhook and next_attempt_at is not null limit ${CANCELLED_AT_ONCE} for update`),
)

/** Cancels the waiting rows of a deleted webhook (docs/contract/delivery.md#holding), with the last statement. */
export async function cancelWaitingDispatches(
  db: Database,
  input: { webhook: WebhookId; workerId: string; now: Date },
): Promise<void> {
  const { webhook, workerId, now } = input
  await cancelWaiting(db, { now, shard: findShard(workerId), webhook })
}

const cancelOrphaned = valueStatement<number, CancelParams & { limit: number }>(
  `with ${cancel(`
  select d.document_id from webhook_queue q
  cross join lateral (
    select d.document_id from webhook_dispatch_open d
    where d.webhook = q.webhook and d.next_attempt_at is not null limit $limit for update skip locked) d
  where (select w.deleted_at is not null and not is_resting(w.account) from webhook w where w.document_id = q.webhook)
  limit $limit`)} select count(*)::int as cancelled from cancelled`,
)

/** Cancels up to `limit` waiting rows of deleted webhooks that the deletion left. Returns their number. */
export function cancelOrphanedDispatches(
  db: Database,
  input: { workerId: string; now: Date; limit: number },
): Promise<number> {
  const { workerId, now, limit } = input
  return cancelOrphaned(db, { now, shard: findShard(workerId), limit })
}

const cancelKept = valueStatement<number, CancelParams & { limit: number }>(
  `with ${cancel(`
  select d.document_id from (
    select document_id, webhook from webhook_dispatch_open
    where kept_until <= $now and next_attempt_at is not null order by kept_until limit $limit for update skip locked) d
  where (select is_resting(w.account) from webhook w where w.document_id = d.webhook) is not true`)}
  select count(*)::int as cancelled from cancelled`,
)

/** Cancels up to `limit` rows not pulled in time nor leased (docs/contract/pull.md#retention). Returns their number. */
export function cancelUnpulled(db: Database, input: { workerId: string; now: Date; limit: number }): Promise<number> {
  const { workerId, now, limit } = input
  return cancelKept(db, { now, shard: findShard(workerId), limit })
}

const deleteOrphaned = valueStatement<number, { before: Date; limit: number }>(`
  with orphan as materialized (
    select q.webhook, q.visit_at from webhook_queue q
    where not exists (select from webhook w where w.document_id = q.webhook) limit $limit
  ), gone as (
    delete from webhook_dispatch_open where document_id = any(array(
      select d.document_id from orphan o
      cross join lateral (
        select d.document_id from webhook_dispatch_open d
        where d.webhook = o.webhook and d.next_attempt_at is not null limit $limit for update skip locked) d
      limit $limit))
    returning document_id, created_at, status
  ), counted as (${countChanges([leftFrom('gone')], String(REMOVAL_SHARD))}),
  attempts as (
    delete from webhook_attempt where dispatch = any(array(select document_id from gone))
  ), unqueued as (
    delete from webhook_queue q using orphan o
    where q.webhook = o.webhook and o.visit_at < $before
      and not exists (select from webhook_dispatch_open d where d.webhook = o.webhook)
  )
  select count(*)::int as deleted from gone`)

/** Deletes up to `limit` waiting rows of webhooks purged before `before`, during a routing. Returns their number. */
export const deleteOrphanedDispatches = (db: Database, before: Date, limit: number): Promise<number> =>
  deleteOrphaned(db, { before, limit })

/** Whether a row of the table contains the entry of its last attempt. */
const HOLDS_ATTEMPT = { webhook_dispatch_open: 'false', webhook_dispatch_ended: 'worker is not null' }

/** The statement that deletes the rows selected by `ids` from a table of the ledger, with their attempts. */
const deleteFrom = (table: keyof typeof HOLDS_ATTEMPT, ids: string, { parts = '', result = '' } = {}) => `
  with ${parts && `${parts},`} gone as (
    delete from ${table} where document_id = any(array(${ids}))
    returning document_id, created_at, status, ${HOLDS_ATTEMPT[table]} as holds_attempt
  ),
  counted as (${countChanges([leftFrom('gone')], String(REMOVAL_SHARD))}),
  attempts as (delete from webhook_attempt where dispatch = any(array(select document_id from gone)) returning 1)
  select count(*)::int as deleted,
    (count(*) filter (where holds_attempt) + (select count(*) from attempts))::int as attempts${result && `, ${result}`}
  from gone`

const ofWebhook = (table: string) => `select document_id from ${table} where webhook = $webhook limit $limit`

const deleteOpenOf = soleRowStatement<{ deleted: number }, { webhook: WebhookId; limit: number }>(
  deleteFrom('webhook_dispatch_open', ofWebhook('webhook_dispatch_open')),
)
const deleteEndedOf = soleRowStatement<{ deleted: number }, { webhook: WebhookId; limit: number }>(
  deleteFrom('webhook_dispatch_ended', ofWebhook('webhook_dispatch_ended')),
)

/** Deletes up to `limit` rows of a webhook with their attempts, in any state. Returns their number. */
export async function deleteDispatchesOf(db: Database, webhook: WebhookId, limit: number): Promise<number> {
  const open = await deleteOpenOf(db, { webhook, limit })
  const ended = await deleteEndedOf(db, { webhook, limit })
  return open.deleted + ended.deleted
}

const lockLedger = rowStatement<WebhookRecord & { locked: number }, { id: string; limit: number }>(`
  with w as (
    select * from webhook where document_id = $id for update
  ), open as (
    select d.document_id from webhook_dispatch_open d, (select count(*) from w) locked where d.webhook = $id
    limit $limit for update of d
  ), ended as (
    select d.document_id from webhook_dispatch_ended d, (select count(*) from open) locked where d.webhook = $id
    limit $limit for update of d
  )
  select ${webhook.members('w')}, (select count(*) from open) + (select count(*) from ended) as locked from w`)

/** Locks a webhook and up to `limit` rows of its ledger, which then stay. Returns their number; undefined for none. */
export async function lockWebhookWithLedger(
  db: Database,
  id: string,
  limit: number,
): Promise<{ webhook: WebhookRecord; locked: number } | undefined> {
  const row = await lockLedger(db, { id, limit })
  if (!row) return undefined
  const { locked, ...found } = row
  return { webhook: found, locked }
}

const deleteLedger = closingStatement<{ webhook: WebhookId }>(`
  gone_open as (delete from webhook_dispatch_open where webhook = $webhook returning document_id, created_at, status),
  gone_ended as (delete from webhook_dispatch_ended where webhook = $webhook returning document_id, created_at, status),
  uncounted as (${countChanges([leftFrom('gone_open'), leftFrom('gone_ended')], String(REMOVAL_SHARD))}),
  gone_attempts as (
    delete from webhook_attempt
    where dispatch = any(array(select document_id from gone_open union all select document_id from gone_ended)))`)

/** Deletes all rows of a webhook with their attempts, with the last statement of the transaction. */
export function deleteLedgerRows(db: Database, webhook: WebhookId): Promise<void> {
  return deleteLedger(db, { webhook })
}

interface Deleted {
  deleted: number
  attempts: number
}

interface DeletedDispatches {
  dispatches: number
  attempts: number
}

const toDispatches = ({ deleted, attempts }: Deleted): DeletedDispatches => ({ dispatches: deleted, attempts })

const deleteOld = soleRowStatement<Deleted, { before: Date; limit: number }, DeletedDispatches>(
  deleteFrom(
    'webhook_dispatch_ended',
    `select document_id from webhook_dispatch_ended where created_at < $before
    order by created_at limit $limit for update skip locked`,
  ),
  toDispatches,
)

/** Deletes up to `limit` ended rows with their attempts. Returns the number (docs/contract/delivery.md#retention). */
export function deleteOldDispatches(db: Database, before: Date, limit: number): Promise<DeletedDispatches> {
  return deleteOld(db, { before, limit })
}

/** Deletes the rows of a page of a walk, but those of accounts that keep longer. Counts as `deleteOldDispatches` does. */
export const deletePassedDispatches = soleRowStatement<Deleted & WalkRow, WalkParams, WalkPage>(
  deleteFrom(
    'webhook_dispatch_ended',
    `select document_id from webhook_dispatch_ended
    where document_id = any(array(select document_id from passed)) and created_at < $before for update skip locked`,
    { parts: walkPage('webhook_dispatch_ended'), result: WALK_RESULT },
  ),
  (row) => toWalkPage(row, [row.deleted, row.attempts]),
)

const deleteOwn = soleRowStatement<
  Deleted,
  { accounts: readonly string[]; edges: readonly Date[]; limit: number },
  DeletedDispatches
>(
  deleteFrom(
    'webhook_dispatch_ended',
    `select d.document_id from unnest($accounts::uuid[], $edges::timestamptz[]) as o (account, edge)
    cross join lateral (
      select document_id from webhook_dispatch_ended d where d.account = o.account and d.created_at < o.edge
      order by d.created_at limit $limit for update skip locked) d
    limit $limit`,
  ),
  toDispatches,
)

/** Deletes such rows of the accounts with a retention of their own, each before its edge. Returns the number. */
export function deleteOwnDispatches(db: Database, own: OwnEdges['own'], limit: number): Promise<DeletedDispatches> {
  return deleteOwn(db, { ...toEdgeColumns(own), limit })
}
