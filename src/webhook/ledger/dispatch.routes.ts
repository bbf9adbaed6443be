import { toAttemptRow } from '../../delivery/post/attempt.schema.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import type { AccountLimiter } from '../../identity/account/limit/account-limit.ts'
import { isOfWebhookOf } from '../reach/account-reach.store.ts'
import { loadWithin, rowWithin } from '../reach/account-reach.ts'
import { BY_DISPATCH, BY_FILTERS, BY_WEBHOOK } from '../reach/row-owner.ts'
import { loadWebhook } from '../registry/webhook.ts'
import { DispatchRow, DispatchWithAttempts, ReplayBody, TestAnswer } from './dispatch.schema.ts'
import {
  hasWaitingReason,
  isOfResource,
  isReplay,
  listDispatches,
  type StoredDispatch,
  toDispatchRecord,
} from './dispatch.store.ts'
import { type DispatchDeps, enqueueTest, loadDispatch, replayDispatch } from './dispatch.ts'
import { toDispatchRow } from './dispatch-row.ts'

export interface DispatchRouteDeps extends DispatchDeps {
  accountLimits: Pick<AccountLimiter, 'take'>
}

/** Filters and sorts of the ledger (docs/contract/delivery.md#ledger-endpoints). */
export const DISPATCH_FIELDS = rowFields({
  webhook: { type: 'uuid' },
  event: { type: 'text' },
  event_id: { type: 'uuid' },
  resource_id: { type: 'text', condition: isOfResource },
  account: { type: 'uuid' },
  status: { type: 'text' },
  attempts: { type: 'integer' },
  last_status_code: { type: 'integer' },
  last_error: { type: 'text' },
  is_test: { type: 'boolean' },
  is_replay: { type: 'boolean', condition: isReplay },
  waiting_reason: { type: 'text', condition: hasWaitingReason },
})

const dispatchRowOf = (row: StoredDispatch) => toDispatchRow(toDispatchRecord(row))

const OF_WEBHOOK_DISPATCH = {
  resource: 'webhook-dispatch',
  accountScope: 'account',
  ownAccounts: true,
  cell: BY_DISPATCH,
  data: DispatchRow,
} as const

export const dispatchRoutes: Routes<DispatchRouteDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/webhook/{id}/test',
      resource: 'webhook',
      action: 'test',
      accountScope: 'account',
      cell: BY_WEBHOOK,
      event: 'operation',
      status: 202,
      ownAccounts: true,
      summary: 'Enqueue a synthetic webhook.test delivery',
      description: 'Works whether or not the webhook subscribes to `webhook.test`, and while it is inactive.',
      params: IdParams,
      data: TestAnswer,
    },
    {
      row: {
        find: (_deps: DispatchRouteDeps, request) =>
          loadWithin('webhook', request, (db, id) => loadWebhook(db, id, { lock: true })),
        neededBy: 'handle',
      },
      handle: async (deps, { db, target, scope, now }) => {
        if (scope !== 'all') await deps.accountLimits.take(db, 'replays_per_minute', [target.account])
        const { dispatchId, eventId } = await enqueueTest(deps, db, target, now)
        return {
          data: { dispatch_id: dispatchId, event_id: eventId },
          message: 'Test delivery enqueued. Read it at /api/v3/webhook/dispatch/{dispatch_id}.',
          changed: [{ id: target.id, account: target.account }],
        }
      },
    },
  ),
  defineList(
    {
      ...OF_WEBHOOK_DISPATCH,
      path: '/api/v3/webhook/dispatch',
      accountScope: 'none',
      cell: BY_FILTERS,
      summary: 'List ledger rows',
      list: DISPATCH_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db, scope, listing }) => listDispatches(db, listing.filters, scope),
      isOf: isOfWebhookOf,
      toRow: dispatchRowOf,
      message: 'Dispatches.',
    },
  ),
  defineRead(
    {
      ...OF_WEBHOOK_DISPATCH,
      path: '/api/v3/webhook/dispatch/{id}',
      summary: 'Read one ledger row with its attempts',
      params: IdParams,
      data: DispatchWithAttempts,
    },
    {
      load: (request) => loadWithin('dispatch', request, loadDispatch),
      toRow: ({ dispatch, attempts }) => ({ ...toDispatchRow(dispatch), attempts_log: attempts.map(toAttemptRow) }),
      message: 'Dispatch.',
      changedOf: ({ dispatch: { id, account } }) => [{ id, account }],
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_DISPATCH,
      method: 'POST',
      path: '/api/v3/webhook/dispatch/{id}/replay',
      action: 'replay',
      status: 202,
      summary: 'Replay a dispatch',
      description:
        'One POST, no automatic retry after it. A row that is `success`, `pending` or `retrying` needs `confirm_duplicate`.',
      params: IdParams,
      body: ReplayBody,
    },
    {
      row: rowWithin('dispatch'),
      handle: async (deps: DispatchRouteDeps, { db, params, scope, body, now }) => {
        const confirmDuplicate = body?.confirm_duplicate ?? false
        const dispatch = await replayDispatch(deps, db, params.id, { confirmDuplicate, now })
        if (scope !== 'all') await deps.accountLimits.take(db, 'replays_per_minute', [dispatch.account])
        return {
          data: toDispatchRow(dispatch),
          message: 'Replay enqueued: one POST.',
          changed: [{ id: dispatch.id, account: dispatch.account }],
        }
      },
    },
  ),
]
