import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { Claim } from '../../delivery/policy.ts'
import type { ErrorClass } from '../../delivery/post/attempt-result.ts'
import { type AttemptChange, type AttemptParams, listAttemptColumns } from '../../delivery/queue/settled-columns.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, statement } from '../../postgres/statement/statement.ts'
import { recordOutcomes } from '../activity/outcome.store.ts'
import { cameInto, countChanges, findSettlingShard, leftFrom, REMOVAL_SHARD } from './delivery-count.store.ts'
import type { AttemptTrigger, DispatchStatus } from './outcome.ts'
import { queueWebhooks } from './queue-head.ts'

/** Changes of the ledger row by an attempt, and its entry of the attempt log. */
export interface DispatchChange extends AttemptChange {
  id: DispatchId
  fence: number
  webhook: WebhookId
  status: DispatchStatus
  errorClass: ErrorClass | null
  trigger: AttemptTrigger
}

/**
 * `change`: results without effect on a failure count are settled here: a success of a webhook without failures, and a
 * retry of one that is not deleted; with `$withFailures` everything. The others, those of purged webhooks included, are
 * returned for a transaction that locks their webhooks. `claim`: the open rows with valid claims, locked. The fence
 * alone decides: a row that waits again gets another one. A replay of a waiting row ends with its attempt: the row then
 * follows its schedule again. A row that ends moves from the open rows to the ended ones, with the entry of its last
 * attempt, unless the two have different triggers. As in `claimDispatches`, no join reaches the open rows.
 */
const SETTLE = `
  with change as materialized (
    select x.*, $withFailures::boolean or (x.status = 'retrying' and w.document_id is not null and w.deleted_at is null)
      or (x.status = 'success' and w.consecutive_failures is not distinct from 0) as is_settled,
      case when not w.is_global then w.account end as owner
    from unnest($ids::uuid[], $fences::int[], $webhooks::uuid[], $statuses::text[], $nextAttempts::timestamptz[],
      $statusCodes::int[], $errorClasses::text[], $durations::int[], $ends::timestamptz[], $attempts::int[],
      $triggers::text[], $workers::text[], $starts::timestamptz[], $excerpts::text[], $headers::jsonb[],
      $timings::jsonb[]) as x (id, fence, webhook, status, next_attempt_at, status_code, error_class, duration_ms,
      ended_at, attempt, trigger, worker, started_at, response_excerpt, response_headers, timings)
    left join lateral (select * from webhook w where w.document_id = x.webhook offset 0) w on true
  ),
  claim as materialized (
    select x.*, d.status as was, d.event_id, d.event, d.account, d.attempts, d.delivered_at, d.is_test, d.created_at,
      case when d.attempt_trigger = 'test' or (d.keeps_schedule and x.status = 'retrying') then 'schedule'
        else d.attempt_trigger end as attempt_trigger, d.kept_until,
      case when not d.keeps_schedule or x.status <> 'retrying' then d.replay_job end as replay_job,
      x.status <> 'retrying' and x.attempt = d.attempts and x.trigger = d.attempt_trigger and x.trigger <> 'test'
        as is_in_row
    from change x
    cross join lateral (
      select * from webhook_dispatch_open d where d.document_id = x.id and d.fence = x.fence for update
    ) d
    where x.is_settled
  ),
  removed as (
    delete from webhook_dispatch_open
    where document_id = any(array(select id from claim where status <> 'retrying'))
  ),
  ended as (
    insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, last_error,
      last_attempt_at, last_status_code, last_duration_ms, delivered_at, ended_at, is_test, attempt_trigger, replay_job,
      fence, created_at, updated_at, worker, response_excerpt, response_headers, dns_ms, connect_ms, tls_ms,
      first_byte_ms, total_ms)
    select id, webhook, event_id, event, account, status, attempts, error_class, started_at, status_code, duration_ms,
      nullif(delivered_at, case when status = 'success' then ended_at end), ended_at, is_test,
      nullif(attempt_trigger, 'schedule'), replay_job, fence, created_at, ended_at, case when is_in_row then worker end,
      case when is_in_row then response_excerpt end, case when is_in_row then response_headers end,
      t."dnsMs", t."connectMs", t."tlsMs", t."firstByteMs", t."totalMs"
    from claim
    left join lateral jsonb_to_record(timings)
      as t ("dnsMs" real, "connectMs" real, "tlsMs" real, "firstByteMs" real, "totalMs" real) on is_in_row
    where status <> 'retrying'
  ),
  waiting as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts,
      next_attempt_at, last_attempt_at, last_status_code, last_error, last_duration_ms, delivered_at, is_test,
      attempt_trigger, replay_job, fence, created_at, updated_at)
    select id, webhook, event_id, event, account, status, attempts, next_attempt_at, started_at, status_code,
      error_class, duration_ms, delivered_at, is_test, attempt_trigger, replay_job, fence + 1, created_at, ended_at
    from claim where status = 'retrying'
    on conflict (document_id) do update
      set status = excluded.status, next_attempt_at = excluded.next_attempt_at, lease_owner = null,
        leased_until = null, last_attempt_at = excluded.last_attempt_at, last_status_code = excluded.last_status_code,
        last_error = excluded.last_error, last_duration_ms = excluded.last_duration_ms,
        attempt_trigger = excluded.attempt_trigger, keeps_schedule = false, replay_job = excluded.replay_job,
        fence = excluded.fence, updated_at = excluded.updated_at
  ),
  due as (
    select webhook, min(next_attempt_at) as visit_at from claim
    where status = 'retrying' and kept_until is null group by webhook
  ),
  queued as (${queueWebhooks('due')}),
  logged as (
    insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code,
      error_class, response_excerpt, response_headers, timings)
    select id, attempt, trigger, worker, started_at, duration_ms, status_code, error_class, response_excerpt,
      response_headers, timings from claim where not is_in_row
  ),
  counted as (${countChanges([cameInto('claim', 'status'), leftFrom('claim', 'was')], '$shard')}),
  outcomes as (${recordOutcomes('claim')})
  select id, fence, true as "isSettled" from claim
  union all select id, fence, false from change where not is_settled`

/** A change that is not void. */
type SettledRow = Pick<DispatchChange, 'id' | 'fence'> & { isSettled: boolean }

interface SettleParams extends AttemptParams {
  fences: readonly number[]
  webhooks: readonly WebhookId[]
  withFailures: boolean
  shard: number
}

const settle = statement<SettledRow, SettleParams>(SETTLE)

/**
 * Writes results, attempt log and totals in one statement. A change under an old fence is void, and in neither list.
 */
export async function settleChanges(
  db: Database,
  changes: readonly DispatchChange[],
  options: { workerId: string; withFailures: boolean },
): Promise<{ settled: Claim[]; deferred: Claim[] }> {
  if (changes.length === 0) return { settled: [], deferred: [] }
  const rows = await settle(db, {
    ...listAttemptColumns(changes),
    fences: changes.map((change) => change.fence),
    webhooks: changes.map((change) => change.webhook),
    withFailures: options.withFailures,
    shard: findSettlingShard(options.workerId),
  })
  return { settled: rows.filter((row) => row.isSettled), deferred: rows.filter((row) => !row.isSettled) }
}

const removeOrphans = changeStatement<{ ids: readonly DispatchId[] }>(`
  with gone as (
    delete from webhook_dispatch_open d
    where d.document_id = any($ids::uuid[])
      and (select w.document_id from webhook w where w.document_id = d.webhook) is null
    returning d.document_id, d.created_at, d.status
  ),
  counted as (${countChanges([leftFrom('gone')], String(REMOVAL_SHARD))})
  delete from webhook_attempt where dispatch = any(array(select document_id from gone))`)

/** Deletes rows of purged webhooks, with their attempts. */
export async function deleteOrphans(db: Database, ids: readonly DispatchId[]): Promise<void> {
  if (ids.length > 0) await removeOrphans(db, { ids })
}
