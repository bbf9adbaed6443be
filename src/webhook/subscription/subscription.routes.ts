import { toEventTypeRow } from '../../event/catalogue/event-type-row.ts'
import { describeRowChange } from '../../event/recording/row-change.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { selectSubscriptions } from '../event-set/subscription.store.ts'
import {
  changeSubscription,
  loadEventSet,
  loadSubscription,
  replaceEventSet,
  sayWarnings,
  subscribe,
  unsubscribe,
  type WebhookEventSet,
} from '../event-set/subscription.ts'
import { isOfWebhookOf, keepOwnSubscriptions } from '../reach/account-reach.store.ts'
import { checkMaySubscribe, checkNewSubscription, checkWithin, loadWithin, lockRoom } from '../reach/account-reach.ts'
import { BY_FILTERS, BY_NAMED_WEBHOOK, BY_SUBSCRIPTION, BY_WEBHOOK } from '../reach/row-owner.ts'
import {
  CreateSubscriptionBody,
  EventSet,
  EventSetBody,
  SubscriptionRow,
  SubscriptionWithWarnings,
  toSubscriptionRow,
  UpdateSubscriptionBody,
} from '../registry/webhook.schema.ts'
import type { WebhookDeps } from '../registry/webhook.ts'

const SUBSCRIPTION_FIELDS = rowFields({
  webhook: { type: 'uuid' },
  event: { type: 'uuid' },
})

function toEventSetRow({ webhook, events, warnings }: WebhookEventSet) {
  return { webhook: webhook.id, events: events.map(toEventTypeRow), warnings }
}

const listNames = (types: readonly { internal: string }[]) => types.map(({ internal }) => internal)

/** What a replacement sets. */
const SETTABLE = ['events'] as const

/** The changed resource of an event set: its webhook, read at the path of the set. */
const changedSetOf = ({ webhook: { id, account } }: WebhookEventSet) => [
  { id, account, url: `/api/v3/webhook/webhook/${id}/events` },
]

const OF_WEBHOOK_EVENT = {
  resource: 'webhook-event',
  accountScope: 'account',
  ownAccounts: true,
  cell: BY_SUBSCRIPTION,
} as const

export const subscriptionRoutes: Routes<WebhookDeps> = [
  defineRead(
    {
      ...OF_WEBHOOK_EVENT,
      path: '/api/v3/webhook/webhook/{id}/events',
      cell: BY_WEBHOOK,
      action: 'find-set',
      rowTag: SETTABLE,
      summary: "Read a webhook's event set",
      params: IdParams,
      data: EventSet,
    },
    {
      load: (request) => loadWithin('webhook', request, loadEventSet),
      toRow: toEventSetRow,
      message: 'Event set.',
      changedOf: changedSetOf,
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_EVENT,
      method: 'PUT',
      path: '/api/v3/webhook/webhook/{id}/events',
      cell: BY_WEBHOOK,
      action: 'set',
      rowTag: SETTABLE,
      summary: "Replace a webhook's event set",
      description: 'The full desired list. `webhook.test` is prepended; ids absent from the body are unsubscribed.',
      params: IdParams,
      body: EventSetBody,
      data: EventSet,
      problems: ['limit_reached'],
    },
    {
      row: { find: (_deps: WebhookDeps, request) => checkWithin('webhook', request), neededBy: 'scope' },
      handle: async (deps, { db, params, scope, body, now }) => {
        const { events } = body
        const room = await lockRoom(deps, db, { scope, webhook: params.id })
        await checkMaySubscribe(db, scope, { webhook: params.id, events, pathOf: (index) => `events.${index}` })
        const set = await replaceEventSet(deps, db, params.id, { events: body.events, now })
        room?.checkOwner(set.webhook.account)
        room?.check('subscriptions', set.growth)
        return {
          data: toEventSetRow(set),
          before: { events: set.before.map(toEventTypeRow) },
          message: sayWarnings(set.isChanged ? 'Event set replaced.' : 'Event set unchanged.', set.warnings),
          changed: set.isChanged ? changedSetOf(set) : [],
          audit: { ...describeRowChange({ events: listNames(set.before) }, { events: listNames(set.events) }) },
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_EVENT,
      method: 'POST',
      path: '/api/v3/webhook/webhook-event',
      action: 'create',
      cell: BY_NAMED_WEBHOOK,
      status: 201,
      summary: 'Subscribe a webhook to an event type',
      body: CreateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['limit_reached'],
    },
    async (deps: WebhookDeps, { db, scope, body, now }) => {
      await checkNewSubscription(db, scope, body)
      const room = await lockRoom(deps, db, { scope, webhook: body.webhook })
      const { subscription, webhook, warnings } = await subscribe(deps, db, { ...body, now })
      room?.checkOwner(webhook.account)
      room?.check('subscriptions', 1)
      return {
        data: { ...toSubscriptionRow(subscription), warnings },
        message: sayWarnings('Subscribed.', warnings),
        changed: [{ id: subscription.id, account: webhook.account }],
        location: `/api/v3/webhook/webhook-event/${subscription.id}`,
      }
    },
  ),
  defineList(
    {
      ...OF_WEBHOOK_EVENT,
      path: '/api/v3/webhook/webhook-event',
      accountScope: 'none',
      cell: BY_FILTERS,
      summary: 'List subscriptions',
      data: SubscriptionRow,
      list: SUBSCRIPTION_FIELDS,
    },
    {
      rows: ({ db, scope }) => buildList(scope, (own) => keepOwnSubscriptions(selectSubscriptions(db), own)),
      isOf: isOfWebhookOf,
      toRow: toSubscriptionRow,
      message: 'Subscriptions.',
    },
  ),
  defineRead(
    {
      ...OF_WEBHOOK_EVENT,
      path: '/api/v3/webhook/webhook-event/{id}',
      summary: 'Read one subscription',
      params: IdParams,
      data: SubscriptionRow,
    },
    {
      load: (request) => loadWithin('subscription', request, loadSubscription),
      toRow: (target) => toSubscriptionRow(target.subscription),
      message: 'Subscription.',
      changedOf: (target) => [{ id: target.subscription.id, account: target.webhook.account }],
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_EVENT,
      method: 'PATCH',
      path: '/api/v3/webhook/webhook-event/{id}',
      action: 'update',
      summary: 'Move a subscription to another event type',
      description:
        'Unsubscribes from the current event type and subscribes to the new one. The answer is the new link, with its own id.',
      params: IdParams,
      body: UpdateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: WebhookDeps, request) => checkWithin('subscription', request), neededBy: 'scope' },
      handle: async (deps, { db, params, scope, body, now }) => {
        await checkMaySubscribe(db, scope, { webhook: null, events: [body.event], pathOf: () => 'event' })
        const moved = await changeSubscription(deps, db, { id: params.id, event: body.event, now })
        const { subscription, webhook, warnings, isChanged } = moved
        return {
          data: { ...toSubscriptionRow(subscription), warnings },
          message: sayWarnings(isChanged ? 'Subscription moved.' : 'Subscription unchanged.', warnings),
          changed: isChanged ? [{ id: subscription.id, account: webhook.account }] : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_EVENT,
      method: 'DELETE',
      path: '/api/v3/webhook/webhook-event/{id}',
      action: 'delete',
      summary: 'Unsubscribe (soft)',
      params: IdParams,
      data: SubscriptionRow,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: WebhookDeps, request) => checkWithin('subscription', request), neededBy: 'scope' },
      handle: async (_deps, { db, params, now }) => {
        const { subscription, webhook } = await unsubscribe(db, params.id, now)
        return {
          data: toSubscriptionRow(subscription),
          message: 'Unsubscribed.',
          changed: [{ id: subscription.id, account: webhook.account }],
        }
      },
    },
  ),
]
