import type { DispatchId, WebhookId } from '../../src/base/id.ts'
import type { ErrorClass } from '../../src/delivery/post/attempt-result.ts'
import { readTotals } from '../../src/webhook/delivery/delivery-count.store.ts'
import type { AttemptTrigger } from '../../src/webhook/delivery/outcome.ts'
import { listMiscounts } from '../harness/delivery/delivery-counts.ts'
import { applyLog, type LogEntry } from './model.ts'
import type { Simulation } from './simulation.ts'
import { compareClaims } from './throttle.ts'

/** Reads what the service recorded, advances the model by it, and compares every row. */
export async function compare(simulation: Simulation): Promise<void> {
  const { model, db, clock } = simulation
  const log = await db
    .selectFrom('webhook_attempt_log as log')
    .leftJoin('webhook_dispatch_open as open', (join) =>
      join
        .onRef('open.document_id', '=', 'log.dispatch')
        .onRef('open.attempts', '=', 'log.attempt')
        .on('open.lease_owner', 'is', null),
    )
    .leftJoin('webhook_dispatch_ended as ended', (join) =>
      join.onRef('ended.document_id', '=', 'log.dispatch').onRef('ended.attempts', '=', 'log.attempt'),
    )
    .select(['log.dispatch', 'log.attempt', 'log.attempt_trigger', 'log.status_code', 'log.error_class'])
    .select(['open.next_attempt_at', 'ended.ended_at'])
    .execute()
  const entries = log
    .map(
      (row): LogEntry => ({
        dispatch: row.dispatch as DispatchId,
        attempt: row.attempt as number,
        trigger: row.attempt_trigger as AttemptTrigger,
        statusCode: row.status_code,
        errorClass: row.error_class as ErrorClass | null,
        // A lost attempt is due again at once, or ends its row: a success after it sets the count to 0.
        takenBackAtMs: (row.next_attempt_at ?? row.ended_at)?.getTime() ?? null,
      }),
    )
    .filter((entry) => !simulation.seenLog.has(`${entry.dispatch} ${entry.attempt}`))
  for (const entry of entries) simulation.seenLog.add(`${entry.dispatch} ${entry.attempt}`)
  simulation.faults.push(...applyLog(model, entries, clock.now()))
  await compareRows(simulation)
}

/** Compares webhooks, claims and totals: what was wrong of them for a moment stays so. */
export async function compareSums(simulation: Simulation): Promise<void> {
  const { model, db } = simulation
  await compareClaims(simulation)
  const webhooks = await db
    .selectFrom('webhook')
    .select(['document_id', 'is_actived', 'consecutive_failures'])
    .execute()
  for (const row of webhooks) {
    const webhook = model.webhooks.get(row.document_id as WebhookId)
    if (webhook?.isActive !== row.is_actived || webhook.failures !== row.consecutive_failures)
      simulation.faults.push(
        `webhook ${row.document_id}: ${row.consecutive_failures} failures, active ${row.is_actived}, ` +
          `not ${webhook?.failures}, active ${webhook?.isActive}`,
      )
  }
  const totals = await readTotals(db)
  for (const [status, count] of model.totals)
    if (totals.get(status) !== count)
      simulation.faults.push(`total of ${status} is ${totals.get(status)}, not ${count}`)
  simulation.faults.push(...(await listMiscounts(db)))
  const disables = await db
    .selectFrom('event_occurrence')
    .select('document_id')
    .where('event', '=', 'webhook.auto-disable')
    .execute()
  if (disables.length !== model.disables)
    simulation.faults.push(`${disables.length} notices of ${model.disables} disables`)
}

async function compareRows({ model, db, faults, clock }: Simulation): Promise<void> {
  const rows = await db
    .selectFrom('webhook_dispatch')
    .select(['document_id', 'status', 'attempts', 'next_attempt_at', 'attempt_trigger', 'lease_owner'])
    .execute()
  if (rows.length !== model.rows.size) faults.push(`${rows.length} rows, not ${model.rows.size}`)
  for (const row of rows) {
    const wanted = model.rows.get(row.document_id as DispatchId)
    if (!wanted) {
      faults.push(`row ${row.document_id} is not known`)
      continue
    }
    wanted.isLeased = row.lease_owner !== null
    // A claim that was answered too late for its second was given back, and is due from then.
    const dueMs = row.next_attempt_at?.getTime() ?? null
    const wasGivenBack = dueMs !== null && dueMs > (wanted.nextAttemptAtMs ?? Infinity) && dueMs <= clock.now()
    if (wasGivenBack && model.webhooks.get(wanted.webhook)?.wasLimited) wanted.nextAttemptAtMs = dueMs
    const attempts = wanted.attempts + (wanted.isLeased ? 1 : 0)
    const found = [row.status, row.attempts, dueMs, row.attempt_trigger]
    const dueAtMs = wanted.isLeased ? null : wanted.nextAttemptAtMs
    const must = [wanted.status, attempts, dueAtMs, wanted.trigger]
    if (String(found) !== String(must)) faults.push(`row ${row.document_id} is ${found}, not ${must}`)
  }
}
