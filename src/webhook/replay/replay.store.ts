import { sql } from 'kysely'
import type { DispatchStatus } from '../../delivery/outcome.ts'
import { buildTotalsOf } from '../../delivery/total.store.ts'
import type { DispatchId } from '../../id.ts'
import type { Database } from '../../postgres/database.ts'
import { markAhead } from '../../postgres/dialect.ts'
import { statement } from '../../postgres/statement.ts'
import { type DispatchColumns, type DispatchRecord, OF_DISPATCH, toDispatchRecord } from '../ledger/dispatch.store.ts'

/** What the rule of a replay looks at in a ledger row. */
export interface ReplayFacts {
  status: DispatchStatus
  isWebhookActive: boolean
  isUnderWay: boolean
  hasEvent: boolean
  /** A replay of the row waits for its POST. */
  isReplayWaiting: boolean
}

interface ReplayFactColumns {
  status: string
  is_webhook_active: boolean
  is_under_way: boolean
  has_event: boolean
  is_replay_waiting: boolean
}

/** The columns above of the row `d` of the webhook `w`, besides `status`. */
const REPLAY_FACTS = `w.is_actived and w.deleted_at is null as is_webhook_active,
  d.lease_until is not null as is_under_way,
  exists (select from event_occurrence e where e.document_id = d.event_id) as has_event,
  d.status = 'retrying' and d.attempt_trigger = 'replay' as is_replay_waiting`

function toReplayFacts(row: ReplayFactColumns): ReplayFacts {
  return {
    status: row.status as DispatchStatus,
    isWebhookActive: row.is_webhook_active,
    isUnderWay: row.is_under_way,
    hasEvent: row.has_event,
    isReplayWaiting: row.is_replay_waiting,
  }
}

const lock = statement<DispatchColumns & ReplayFactColumns>(`
  select ${OF_DISPATCH}, ${REPLAY_FACTS} from webhook_dispatch d join webhook w on w.document_id = d.webhook
  where d.document_id = $1 for update of d`)

/** A ledger row, locked until the transaction ends, with what decides over its replay. */
export async function lockReplayable(
  db: Database,
  id: string,
): Promise<{ dispatch: DispatchRecord; facts: ReplayFacts } | undefined> {
  const [row] = await lock(db, [id])
  return row && { dispatch: toDispatchRecord(row), facts: toReplayFacts(row) }
}

const LIST_FACTS = `
  select d.document_id, d.status, ${REPLAY_FACTS} from webhook_dispatch d join webhook w on w.document_id = d.webhook
  where d.document_id = any($1)`
type ListedFacts = ReplayFactColumns & { document_id: string }
const selectFacts = statement<ListedFacts>(LIST_FACTS)
const lockFacts = statement<ListedFacts>(`${LIST_FACTS} for update of d skip locked`)

/**
 * The facts of these rows. With `lock` they stay as they are until the transaction ends, and rows that another transaction
 * holds are left out: nothing is waited for.
 */
export async function listReplayFacts(
  db: Database,
  ids: readonly DispatchId[],
  options: { lock?: boolean } = {},
): Promise<Map<string, ReplayFacts>> {
  if (ids.length === 0) return new Map()
  const rows = options.lock ? await lockFacts(db, [ids]) : await selectFacts(db, [ids])
  return new Map(rows.map((row) => [row.document_id, toReplayFacts(row)]))
}

/** Makes rows due now for one replay POST each, on behalf of a job or of nobody's; sent with the next statement. */
export async function scheduleReplays(
  db: Database,
  ids: readonly DispatchId[],
  input: { job: string | null; workerId: string; now: Date },
): Promise<void> {
  if (ids.length === 0) return
  const { job, workerId, now } = input
  const query = sql`
    with due as (
      update webhook_dispatch
      set status = 'retrying', attempt_trigger = 'replay', replay_job = ${job}, next_attempt_at = ${now}, ended_at = null,
        updated_at = ${now}
      where document_id = any(${ids}::uuid[]) returning 1
    ) ${buildTotalsOf('due', workerId, 'retrying')}`
  await db.executeQuery(markAhead(query.compile(db)))
}
