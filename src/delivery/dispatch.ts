import { findEvent } from '../event/event.store.ts'
import { type EventDeps, recordRoutedEvent } from '../event/event.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { DispatchId, EventId, IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { findWebhook, type WebhookRecord } from '../webhook/webhook.store.ts'
import { type DispatchRecord, findDispatch, insertDispatches, scheduleReplay } from './dispatch.store.ts'
import type { DispatchStatus } from './outcome.ts'

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
 * Enqueues a synthetic `webhook.test` delivery for one webhook (contract, Webhook API). It is an ordinary ledger row:
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
      event: 'webhook.test',
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
        event: event.event,
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

function checkQueueEnabled(deps: Pick<EventDeps, 'enableApiEventQueue'>): void {
  if (!deps.enableApiEventQueue)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event leaves the service. Set it to true first.',
    )
}

/** States whose event may have arrived or may still arrive: a replay of these has to be confirmed (D68). */
const NEEDS_CONFIRMATION: readonly DispatchStatus[] = ['success', 'pending', 'retrying']

/**
 * Makes one extra POST of a dispatch due (D68). `attempts` goes on counting; no automatic retry follows.
 * Throws 409 `webhook_inactive`, `duplicate_not_confirmed`, or `conflict` when an attempt is under way or its event is gone.
 */
export async function replayDispatch(
  deps: DispatchDeps,
  db: Database,
  dispatch: DispatchRecord,
  input: { confirmDuplicate: boolean; now: Date },
): Promise<DispatchRecord> {
  const webhook = await findWebhook(db, dispatch.webhook)
  if (!webhook?.isActived)
    throw new Problem('webhook_inactive', 'The webhook is inactive or deleted. Activate it, then replay.')
  if (!input.confirmDuplicate && NEEDS_CONFIRMATION.includes(dispatch.status))
    throw new Problem(
      'duplicate_not_confirmed',
      `The row is ${dispatch.status}: its event has arrived or is on its way. Send {"confirm_duplicate": true} to post it again.`,
    )
  checkQueueEnabled(deps)
  if (dispatch.leaseUntil !== null)
    throw new Problem('conflict', 'An attempt of this row is under way. Replay it when that has ended.')
  if (!(await findEvent(db, dispatch.eventId)))
    throw new Problem(
      'conflict',
      'The event of this row is no longer stored (an old row), so it cannot be posted again.',
    )
  return scheduleReplay(db, dispatch.id, { workerId: deps.workerId, now: input.now })
}
