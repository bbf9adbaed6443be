import { findEvent } from '../../event/event.store.ts'
import { type EventDeps, recordRoutedEvent } from '../../event/event.ts'
import { notFound, Problem } from '../../http/problem.ts'
import type { DispatchId, EventId, IdMaker, WebhookId } from '../../id.ts'
import type { Database } from '../../postgres/database.ts'
import { buildReplayProblem, decideReplay } from '../replay/replay.ts'
import { findWebhook, type WebhookRecord } from '../webhook.store.ts'
import {
  type DispatchRecord,
  deleteDispatchesOf,
  findDispatch,
  insertDispatches,
  scheduleReplay,
} from './dispatch.store.ts'

/** What the operations on the ledger use. */
export interface DispatchDeps extends EventDeps {
  ids: IdMaker
  workerId: string
}

/** The ledger row with this id, or a 404. */
export async function loadDispatch(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<DispatchRecord> {
  const dispatch = await findDispatch(db, id, options)
  if (!dispatch) throw notFound('dispatch')
  return dispatch
}

/**
 * Enqueues a synthetic `webhook.test` delivery for one webhook (docs/contract/webhooks.md#webhook-endpoints). It is an ordinary ledger row:
 * signed, logged and retried like any other, whether the webhook subscribes to it or not, and also while it is inactive.
 */
export async function enqueueTest(
  deps: DispatchDeps,
  db: Database,
  webhook: WebhookRecord,
  now: Date,
): Promise<{ dispatchId: DispatchId; eventId: EventId }> {
  if (!deps.enableApiEventQueue)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event leaves the service. Set it to true first.',
    )
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
  await insertDispatches(db, {
    dispatches: [
      {
        id,
        webhook: webhook.id,
        eventId: event.id,
        event: event.type,
        account: event.account,
        isTest: true,
        trigger: 'test',
      },
    ],
    workerId: deps.workerId,
    now,
  })
  return { dispatchId: id, eventId: event.id }
}

/** Nothing leaves the service while the event queue is off (docs/contract/events.md#event-queue-switch). Throws 409 `conflict`. */
export function checkQueueEnabled(deps: Pick<EventDeps, 'enableApiEventQueue'>): void {
  if (!deps.enableApiEventQueue)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event leaves the service. Set it to true first.',
    )
}

/**
 * Makes one extra POST of a dispatch due (docs/contract/delivery.md#replay). `attempts` goes on counting; no automatic retry follows.
 * Throws 409 `webhook_inactive`, `duplicate_not_confirmed`, or `conflict` when an attempt is in flight, a replay waits
 * already, or its event is gone.
 */
export async function replayDispatch(
  deps: DispatchDeps,
  db: Database,
  dispatch: DispatchRecord,
  input: { confirmDuplicate: boolean; now: Date },
): Promise<DispatchRecord> {
  const webhook = await findWebhook(db, dispatch.webhook)
  const verdict = decideReplay({
    status: dispatch.status,
    isWebhookActive: webhook?.isActived ?? false,
    isUnderWay: dispatch.leaseUntil !== null,
    isReplayWaiting: dispatch.status === 'retrying' && dispatch.trigger === 'replay',
    hasEvent: (await findEvent(db, dispatch.eventId)) !== undefined,
    isConfirmed: input.confirmDuplicate,
  })
  if (verdict !== 'replay') throw buildReplayProblem(verdict, dispatch.status)
  checkQueueEnabled(deps)
  return scheduleReplay(db, dispatch.id, { workerId: deps.workerId, now: input.now })
}

/** Rows that one statement deletes: short enough for the limit of a statement on a slow disk. */
const DELETED_AT_ONCE = 10_000

/** Deletes the ledger of a webhook that is purged, in the caller's transaction, in as many statements as it takes. */
export async function deleteLedger(db: Database, webhook: WebhookId): Promise<void> {
  for (;;) {
    const deleted = await deleteDispatchesOf(db, webhook, DELETED_AT_ONCE)
    if (deleted < DELETED_AT_ONCE) return
  }
}
