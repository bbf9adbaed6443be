import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { nameHolder } from '../../http/shape/caller.ts'
import { rowWithin } from '../reach/account-reach.ts'
import { BY_WEBHOOK } from '../reach/row-owner.ts'
import {
  AcknowledgeBody,
  AcknowledgedReceipts,
  ExtendBody,
  ExtendedReceipts,
  GiveBackBody,
  PullBacklog,
  PullBody,
  PulledDeliveries,
  ReturnedReceipts,
} from './pull.schema.ts'
import { type LeasedDelivery, loadBacklog, type PullDeps, pullDeliveries } from './pull.ts'
import { acknowledge, extend, giveBack, type ReceiptRequest } from './receipt.ts'

/** A pull is no event or audit entry: a subscriber that pulls `webhook.pull` would never be done. */
const OF_WEBHOOK = {
  resource: 'webhook',
  accountScope: 'account',
  ownAccounts: true,
  cell: BY_WEBHOOK,
  permission: 'webhook:pull',
  event: 'none',
  writes: false,
  params: IdParams,
} as const

const WEBHOOK = { ...rowWithin('webhook'), neededBy: 'validation' } as const

/** Of a route that takes receipts of pulled deliveries. */
const OF_RECEIPTS = { ...OF_WEBHOOK, method: 'POST', problems: ['conflict'] } as const

type EndRequest = Pick<ReceiptRequest, 'db' | 'scope'> & { params: { id: string }; body: { receipts: string[] } }

/** Ends the leases of receipts, and answers what became of each. */
const endBy = <Ended>(end: (deps: PullDeps, request: ReceiptRequest) => Promise<Ended[]>, message: string) => ({
  row: WEBHOOK,
  handle: async (deps: PullDeps, { db, params, body, scope }: EndRequest) => ({
    data: { receipts: await end(deps, { db, id: params.id, scope, receipts: body.receipts }) },
    message,
  }),
})

const toWire = ({ leaseUntil, ...delivery }: LeasedDelivery) => ({ ...delivery, lease_until: leaseUntil.toISOString() })

/** Routes of webhooks of the mode `pull` (docs/contract/pull.md). */
export const pullRoutes: Routes<PullDeps> = [
  defineRoute(
    {
      ...OF_WEBHOOK,
      method: 'POST',
      path: '/api/v3/webhook/webhook/{id}/pull',
      action: 'pull',
      summary: 'Pull due deliveries of a webhook',
      description:
        'For the mode `pull`. Each delivery is leased and signed as a POST would be; acknowledge it before its lease ends, or ' +
        'it comes again on the retry schedule. With `wait_seconds` the answer waits for a first delivery.',
      body: PullBody,
      data: PulledDeliveries,
      problems: ['conflict', 'webhook_inactive', 'overloaded'],
    },
    {
      row: WEBHOOK,
      handle: async (deps: PullDeps, { db, params, body, scope, caller, waiting }) => {
        const { max = 10, wait_seconds: waitSeconds = 0, lease_seconds: leaseSeconds = 60 } = body ?? {}
        const deliveries = await pullDeliveries(deps, {
          ...{ db, id: params.id, scope, max, waitSeconds, leaseSeconds },
          ...{ caller: nameHolder(caller), recheck: waiting.recheck },
          watch: (onClosed) => waiting.watch(onClosed, (waitSeconds + 30) * 1_000),
        })
        return { data: { deliveries: deliveries.map(toWire) }, message: 'Deliveries.' }
      },
    },
  ),
  defineRoute(
    {
      ...OF_RECEIPTS,
      path: '/api/v3/webhook/webhook/{id}/ack',
      action: 'ack',
      summary: 'Acknowledge pulled deliveries',
      description: 'Ends them as `success`. A repeat answers the same. A receipt whose lease has ended does nothing.',
      body: AcknowledgeBody,
      data: AcknowledgedReceipts,
    },
    endBy(acknowledge, 'Acknowledged.'),
  ),
  defineRoute(
    {
      ...OF_RECEIPTS,
      path: '/api/v3/webhook/webhook/{id}/nack',
      action: 'nack',
      summary: 'Give pulled deliveries back',
      description:
        'Ends their leases and attempts: the next ones are due at once, five in all. A repeat answers the same. A receipt ' +
        'whose lease has ended does nothing.',
      body: GiveBackBody,
      data: ReturnedReceipts,
    },
    endBy(giveBack, 'Given back.'),
  ),
  defineRoute(
    {
      ...OF_RECEIPTS,
      path: '/api/v3/webhook/webhook/{id}/extend',
      action: 'extend',
      summary: 'Extend the leases of pulled deliveries',
      description: 'A lease ends an hour after its pull at the latest. A receipt whose lease has ended does nothing.',
      body: ExtendBody,
      data: ExtendedReceipts,
    },
    {
      row: WEBHOOK,
      handle: async (deps: PullDeps, { db, params, body, scope }) => {
        const { receipts, lease_seconds: leaseSeconds = 60 } = body
        const extended = await extend(deps, { db, id: params.id, scope, receipts, leaseSeconds })
        const toRow = ({ leaseUntil, ...row }: (typeof extended)[number]) => ({
          ...row,
          lease_until: leaseUntil?.toISOString() ?? null,
        })
        return { data: { receipts: extended.map(toRow) }, message: 'Extended.' }
      },
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK,
      permission: 'webhook:find-one',
      method: 'GET',
      path: '/api/v3/webhook/webhook/{id}/backlog',
      action: 'find-backlog',
      summary: 'Read what waits to be pulled',
      data: PullBacklog,
      problems: ['conflict'],
    },
    {
      row: WEBHOOK,
      handle: async (_deps: PullDeps, request) => {
        const { waiting, oldestAt } = await loadBacklog(request, request.now)
        return { data: { waiting, oldest_at: oldestAt?.toISOString() ?? null }, message: 'Backlog.' }
      },
    },
  ),
]
