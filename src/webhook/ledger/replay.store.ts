import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'
import { cameInto, countChanges, findShard, leftFrom } from '../delivery/delivery-count.store.ts'
import { findKeptUntil, queueWebhooks } from '../delivery/queue-head.ts'
import { type DispatchRecord, ledger, OF_DISPATCH, type StoredDispatch, toDispatchRecord } from './dispatch.store.ts'
import type { ReplayQuestion } from './replay.ts'

/** Facts of a ledger row for the rule of a replay. */
export type ReplayFacts = Omit<ReplayQuestion, 'isConfirmed'>

export interface ListedReplayFacts extends ReplayFacts {
  webhook: WebhookId
}

/** The columns above of the row `d` of the webhook `w`, besides `status`. */
const REPLAY_FACTS = `coalesce(w.is_actived and w.deleted_at is null, false) as "isWebhookActive",
  d.status in ('pending', 'retrying') and d.next_attempt_at is null as "isInFlight",
  exists (select from event_occurrence e where e.document_id = d.event_id) as "hasEvent",
  d.status = 'retrying' and d.attempt_trigger = 'replay' as "isReplayWaiting"`

/** The rows of the ledger that `condition` selects, locked in their table, with the name `d`. */
const lockedRows = (condition: string, wait: '' | 'skip locked') => `
  with open as materialized (select d.* from webhook_dispatch_open d where ${condition} for update ${wait}),
  ended as materialized (select d.* from webhook_dispatch_ended d where ${condition} for update ${wait}),
  d as (
    select ${ledger.select()}, next_attempt_at, lease_owner from open
    union all select ${ledger.select()}, null, null from ended
  )`

const lock = rowStatement<StoredDispatch & ReplayFacts, { id: string }>(`
  ${lockedRows('d.document_id = $id', '')}
  select ${OF_DISPATCH}, ${REPLAY_FACTS} from d left join webhook w on w.document_id = d.webhook`)

/** Number of tries to find a row: it may move to the other table of the ledger during the wait. */
const LOOKS = 3

/** A ledger row, locked until the transaction ends, with the facts for its replay. */
export async function lockReplayable(
  db: Database,
  id: string,
): Promise<{ dispatch: DispatchRecord; facts: ReplayFacts } | undefined> {
  for (let look = 0; look < LOOKS; look += 1) {
    const row = await lock(db, { id })
    if (row) return splitFacts(row)
  }
  return undefined
}

function splitFacts({
  isWebhookActive,
  isInFlight,
  hasEvent,
  isReplayWaiting,
  ...stored
}: StoredDispatch & ReplayFacts) {
  const facts = { status: stored.status, isWebhookActive, isInFlight, hasEvent, isReplayWaiting }
  return { dispatch: toDispatchRecord(stored), facts }
}

const LISTED = `select d.document_id as id, d.webhook, d.status, ${REPLAY_FACTS}`
const OF_WEBHOOKS = 'left join webhook w on w.document_id = d.webhook'
type ListedFacts = ListedReplayFacts & { id: string }
const selectFacts = statement<ListedFacts, { ids: readonly DispatchId[] }>(
  `${LISTED} from webhook_dispatch d ${OF_WEBHOOKS} where d.document_id = any($ids)`,
)
const lockFacts = statement<ListedFacts, { ids: readonly DispatchId[] }>(
  `${lockedRows('d.document_id = any($ids)', 'skip locked')} ${LISTED} from d ${OF_WEBHOOKS} where not is_resting(w.account)`,
)

/** The facts of these rows. With `lock` they are locked; those locked by others or of moved accounts are skipped. */
export async function listReplayFacts(
  db: Database,
  ids: readonly DispatchId[],
  options: { lock?: boolean } = {},
): Promise<Map<string, ListedReplayFacts>> {
  if (ids.length === 0) return new Map()
  const rows = options.lock ? await lockFacts(db, { ids }) : await selectFacts(db, { ids })
  return new Map(rows.map(({ id, ...facts }) => [id, facts]))
}

const schedule = closingStatement<{
  ids: readonly DispatchId[]
  now: Date
  /** Expiry of rows that are pulled. */
  keptUntil: Date
  job: string | null
  shard: number
}>(`
  reopened as (
    delete from webhook_dispatch_ended where document_id = any($ids::uuid[]) returning *
  ), opened as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
      last_attempt_at, last_status_code, last_error, last_duration_ms, delivered_at, is_test, attempt_trigger, replay_job,
      fence, kept_until, created_at, updated_at)
    select document_id, webhook, event_id, event, account, 'retrying', attempts, $now::timestamptz, last_attempt_at,
      last_status_code, last_error, last_duration_ms,
      coalesce(delivered_at, case when status = 'success' then ended_at end), is_test, 'replay', $job::uuid,
      fence + 1,
      case when (select w.mode from webhook w where w.document_id = reopened.webhook) = 'pull' then $keptUntil::timestamptz end,
      created_at, $now
    from reopened
    returning webhook, kept_until
  ), logged as (
    insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code,
      error_class, response_excerpt, response_headers, timings)
    select document_id, attempts, coalesce(attempt_trigger, 'schedule'), worker, last_attempt_at, last_duration_ms, last_status_code,
      last_error, response_excerpt, response_headers,
      case when total_ms is not null then
        jsonb_build_object('dnsMs', dns_ms, 'connectMs', connect_ms, 'tlsMs', tls_ms, 'firstByteMs', first_byte_ms,
          'totalMs', total_ms)
      end
    from reopened where worker is not null
  ), waiting as materialized (
    select document_id, created_at, status from webhook_dispatch_open
    where document_id = any($ids::uuid[]) and next_attempt_at is not null for update
  ), hurried as (
    update webhook_dispatch_open
    set status = 'retrying', attempt_trigger = 'replay', keeps_schedule = true, replay_job = $job,
      next_attempt_at = $now, kept_until = case when kept_until is not null then $keptUntil end, updated_at = $now
    where document_id = any(array(select document_id from waiting))
    returning webhook, kept_until
  ), due as (
    select webhook from opened where kept_until is null union all select webhook from hurried where kept_until is null
  ),
  moved as (select created_at, status from reopened union all select created_at, status from waiting),
  queued as (${queueWebhooks('due', { at: '$now', wakes: true })}),
  counted as (${countChanges([cameInto('moved', `'retrying'`), leftFrom('moved')], '$shard')})`)

/** Makes rows due now: ended ones for one replay, waiting ones for their next attempt. With the last statement. */
export async function scheduleReplays(
  db: Database,
  ids: readonly DispatchId[],
  input: { job: string | null; workerId: string; now: Date },
): Promise<void> {
  if (ids.length === 0) return
  const { job, workerId, now } = input
  await schedule(db, { ids, now, keptUntil: findKeptUntil(now), job, shard: findShard(workerId) })
}
