import type { DispatchId, EventId, IdMaker } from '../../base/id.ts'
import type { LoggedAttempt } from '../../delivery/post/attempt.schema.ts'
import { type EventDeps, recordRoutedEvent } from '../../event/occurrence/event.ts'
import { orNotFound, Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { WebhookRecord } from '../registry/webhook.store.ts'
import { type DispatchRecord, findDispatchWithAttempts, insertDispatch } from './dispatch.store.ts'
import { deleteDispatchesOf, deleteLedgerRows, lockWebhookWithLedger } from './removal.store.ts'
import { lockReplayable, scheduleReplays } from './replay.store.ts'
import { buildReplayProblem, decideReplay } from './replay.ts'

export interface DispatchDeps extends EventDeps {
  ids: IdMaker
  workerId: string
}

/** The ledger row with this id and its attempts, or a 404. */
export async function loadDispatch(
  db: Database,
  id: string,
): Promise<{ dispatch: DispatchRecord; attempts: LoggedAttempt[] }> {
  return orNotFound(await findDispatchWithAttempts(db, id), 'dispatch')
}

/** Enqueues a `webhook.test` delivery, an ordinary ledger row (docs/contract/webhooks.md#webhook-endpoints). */
export async function enqueueTest(
  deps: DispatchDeps,
  db: Database,
  webhook: WebhookRecord,
  now: Date,
): Promise<{ dispatchId: DispatchId; eventId: EventId }> {
  checkQueueEnabled(deps)
  const event = await recordRoutedEvent(
    deps,
    db,
    {
      type: 'webhook.test',
      accountScope: 'account',
      account: webhook.account,
      resource: 'webhook',
      action: 'test',
      resourceId: webhook.id,
      url: `/api/v3/webhook/webhook/${webhook.id}`,
    },
    now,
  )
  const id = deps.ids.next<'dispatch'>()
  const dispatch = { id, webhook: webhook.id, eventId: event.id, event: event.type, account: event.account }
  await insertDispatch(
    db,
    { ...dispatch, isTest: true, trigger: 'test', isPulled: webhook.mode === 'pull' },
    { workerId: deps.workerId, now },
  )
  return { dispatchId: id, eventId: event.id }
}

/** Nothing is sent while the event queue is off (docs/contract/events.md#event-queue-switch). Throws 409 `conflict`. */
export function checkQueueEnabled(deps: Pick<EventDeps, 'enableApiEventQueue'>): void {
  if (!deps.enableApiEventQueue)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event leaves the service. Set it to true first.',
    )
}

/** Makes one extra POST of a dispatch due (docs/contract/delivery.md#replay). Throws 404, and 409 by its reason. */
export async function replayDispatch(
  deps: DispatchDeps,
  db: Database,
  id: string,
  input: { confirmDuplicate: boolean; now: Date },
): Promise<DispatchRecord> {
  const { confirmDuplicate, now } = input
  const found = orNotFound(await lockReplayable(db, id), 'dispatch')
  const { dispatch, facts } = found
  const verdict = decideReplay({ ...facts, isConfirmed: confirmDuplicate })
  if (verdict !== 'replay') throw buildReplayProblem(verdict, dispatch.status)
  checkQueueEnabled(deps)
  await scheduleReplays(db, [dispatch.id], { job: null, workerId: deps.workerId, now })
  return { ...dispatch, status: 'retrying', trigger: 'replay', nextAttemptAt: now, updatedAt: now }
}

/** Maximum number of rows deleted in one statement, for the statement timeout on a slow disk. */
const DELETED_AT_ONCE = 10_000

/** Locks a webhook for a purge and deletes its ledger, a longer one in batches. Undefined for an unknown webhook. */
export async function deleteLedger(db: Database, id: string): Promise<WebhookRecord | undefined> {
  const found = await lockWebhookWithLedger(db, id, DELETED_AT_ONCE)
  if (!found) return undefined
  const { webhook, locked } = found
  if (locked >= DELETED_AT_ONCE) while ((await deleteDispatchesOf(db, webhook.id, DELETED_AT_ONCE)) > 0);
  await deleteLedgerRows(db, webhook.id)
  return webhook
}
