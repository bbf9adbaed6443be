import type { AccountId, EventId } from '../../base/id.ts'
import type { Claim } from '../../delivery/policy.ts'
import { listResultColumns, type ResultChange, type ResultParams } from '../../delivery/queue/settled-columns.ts'
import { type OwnEdges, toEdgeColumns } from '../../postgres/own-retention.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, statement, valueStatement } from '../../postgres/statement/statement.ts'
import type { MessageErrorClass, MessageStatus } from '../provider/outcome.ts'
import { queueAccounts } from './claim.store.ts'

export interface MessageChange extends ResultChange {
  id: EventId
  fence: number
  account: AccountId
  status: MessageStatus
  errorClass: MessageErrorClass | null
  /** Whether an attempt was made; else it is not counted. */
  isAttempt: boolean
}

/** As for webhooks: the fence decides which claims are valid, and ended rows move to the ended ones. */
const settle = statement<Claim, ResultParams & { fences: readonly number[]; areAttempts: readonly boolean[] }>(`
  with change as materialized (
    select x.* from unnest($ids::uuid[], $fences::int[], $statuses::text[], $nextAttempts::timestamptz[],
      $statusCodes::int[], $errorClasses::text[], $durations::int[], $ends::timestamptz[], $areAttempts::boolean[])
      as x (id, fence, status, next_attempt_at, status_code, error_class, duration_ms, ended_at, is_attempt)
  ),
  claim as materialized (
    select x.*, d.account, d.event, d.contract, d.attempts - (not x.is_attempt)::int as attempts,
      d.results + x.is_attempt::int as results, d.last_attempt_at, d.created_at,
      case when x.is_attempt then x.status_code else d.last_status_code end as last_status_code,
      case when x.is_attempt then x.error_class else d.last_error end as last_error,
      case when x.is_attempt then x.duration_ms else d.last_duration_ms end as last_duration_ms
    from change x
    cross join lateral (
      select * from realtime_message_open d where d.document_id = x.id and d.fence = x.fence for update
    ) d
  ),
  removed as (
    delete from realtime_message_open
    where document_id = any(array(select id from claim where status <> 'retrying'))
  ),
  ended as (
    insert into realtime_message_ended (document_id, account, event, contract, status, attempts, results,
      last_status_code, last_error, last_duration_ms, last_attempt_at, created_at, ended_at, fence)
    select id, account, event, contract, status, attempts, results, last_status_code, last_error, last_duration_ms,
      last_attempt_at, created_at, ended_at, fence
    from claim where status <> 'retrying'
  ),
  waiting as (
    insert into realtime_message_open (document_id, account, event, contract, attempts, results, next_attempt_at,
      last_attempt_at, last_status_code, last_error, last_duration_ms, fence, created_at, updated_at)
    select id, account, event, contract, attempts, results, next_attempt_at, last_attempt_at, last_status_code,
      last_error, last_duration_ms, fence + 1, created_at, ended_at
    from claim where status = 'retrying'
    on conflict (document_id) do update
      set attempts = excluded.attempts, results = excluded.results, next_attempt_at = excluded.next_attempt_at,
        lease_owner = null, last_status_code = excluded.last_status_code, last_error = excluded.last_error,
        last_duration_ms = excluded.last_duration_ms, fence = excluded.fence, updated_at = excluded.updated_at
  ),
  due as (
    select account, min(next_attempt_at) as visit_at from claim where status = 'retrying' group by account
  ),
  queued as (${queueAccounts('due')})
  select id, fence from claim`)

/** Writes results and ends their claims, in one statement. Returns the valid ones; the others have an old fence. */
export async function settleMessages(db: Database, changes: readonly MessageChange[]): Promise<Claim[]> {
  if (changes.length === 0) return []
  return settle(db, {
    ...listResultColumns(changes),
    fences: changes.map((change) => change.fence),
    areAttempts: changes.map((change) => change.isAttempt),
  })
}

/**
 * Makes all messages due that wait for a retry: the provider answers again. The accounts are locked first, as by a
 * claim: two that wait for each other would be a deadlock. They are ordered by their text, because for the order of
 * its key PostgreSQL may read the whole queue.
 */
export const makeMessagesDue = changeStatement<{ now: Date }>(`
  with heads as materialized (
    select account from realtime_queue where visit_at > $now
    order by (account::text) collate "C" for update skip locked
  ), waiting as (
    update realtime_message_open set next_attempt_at = $now, updated_at = $now
    where account = any(array(select account from heads)) and next_attempt_at > $now
  )
  update realtime_queue set visit_at = $now where account = any(array(select account from heads))`)

/** Deletes up to `limit` ended messages from before `before`. Returns their number. */
export const deleteOldMessages = deletionOfOld('realtime_message_ended', {
  key: 'document_id',
  time: 'created_at',
})

const deleteOwn = valueStatement<number, { accounts: readonly string[]; edges: readonly Date[]; limit: number }>(`
  with gone as (
    delete from realtime_message_ended where document_id = any(array(
      select m.document_id from unnest($accounts::uuid[], $edges::timestamptz[]) as o (account, edge)
      cross join lateral (
        select document_id from realtime_message_ended m where m.account = o.account and m.created_at < o.edge
        order by m.created_at limit $limit for update skip locked) m
      limit $limit))
    returning document_id
  ) select count(*)::int as count from gone`)

/** Deletes up to `limit` ended messages of accounts, each before its edge. Returns their number. */
export function deleteOwnMessages(db: Database, own: OwnEdges['own'], limit: number): Promise<number> {
  return deleteOwn(db, { ...toEdgeColumns(own), limit })
}
