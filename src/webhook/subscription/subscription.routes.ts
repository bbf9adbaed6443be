import { toEventTypeRow } from '../../event/catalogue/event-type-row.ts'
import { describeRowChange } from '../../event/recording/row-change.ts'
import { buildList, readScopedPage } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
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
import { keepOwnSubscriptions } from '../reach/account-reach.store.ts'
import { checkMaySubscribe, checkNewSubscription, checkWithin, loadWithin, lockRoom } from '../reach/account-reach.ts'
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

const SUBSCRIPTION_FIELDS = {
  document_id: { type: 'uuid' },
  webhook: { type: 'uuid' },
  event: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

function toEventSetRow({ webhook, events, warnings }: WebhookEventSet) {
  return { webhook: webhook.id, events: events.map(toEventTypeRow), warnings }
}

const listNames = (types: readonly { internal: string }[]) => types.map(({ internal }) => internal)

/** The changed resource of an event set: its webhook, read at the path of the set. */
const changedSetOf = ({ webhook: { id, account } }: WebhookEventSet) => [
  { id, account, url: `/api/v3/webhook/webhook/${id}/events` },
]

export const subscriptionRoutes: Routes<WebhookDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook/{id}/events',
      resource: 'webhook-event',
      action: 'find-set',
      accountScope: 'account',
      ownAccounts: true,
      summary: "Read a webhook's event set",
      params: IdParams,
      data: EventSet,
    },
    {
      row: { find: (_deps: WebhookDeps, request) => loadWithin('webhook', request, loadEventSet), neededBy: 'handle' },
      handle: async (_deps, { target }) => ({
        data: toEventSetRow(target),
        message: 'Event set.',
        changed: changedSetOf(target),
      }),
    },
  ),
  defineRoute(
    {
      method: 'PUT',
      path: '/api/v3/webhook/webhook/{id}/events',
      resource: 'webhook-event',
      action: 'set',
      accountScope: 'account',
      ownAccounts: true,
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
          message: sayWarnings(set.isChanged ? 'Event set replaced.' : 'Event set unchanged.', set.warnings),
          changed: set.isChanged ? changedSetOf(set) : [],
          audit: { ...describeRowChange({ events: listNames(set.before) }, { events: listNames(set.events) }) },
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/webhook-event',
      resource: 'webhook-event',
      action: 'create',
      accountScope: 'account',
      status: 201,
      ownAccounts: true,
      summary: 'Subscribe a webhook to an event type',
      body: CreateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['limit_reached'],
    },
    {
      handle: async (deps: WebhookDeps, { db, scope, body, now }) => {
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
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook-event',
      resource: 'webhook-event',
      action: 'find-all',
      accountScope: 'none',
      ownAccounts: true,
      summary: 'List subscriptions',
      data: SubscriptionRow,
      list: SUBSCRIPTION_FIELDS,
    },
    {
      handle: async (_deps: WebhookDeps, { db, scope, listing }) => ({
        ...(await readScopedPage(
          db,
          buildList(scope, (own) => keepOwnSubscriptions(selectSubscriptions(db), own)),
          {
            listing,
            fields: SUBSCRIPTION_FIELDS,
            toRow: toSubscriptionRow,
          },
        )),
        message: 'Subscriptions.',
      }),
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook-event/{id}',
      resource: 'webhook-event',
      action: 'find-one',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Read one subscription',
      params: IdParams,
      data: SubscriptionRow,
    },
    {
      row: {
        find: (_deps: WebhookDeps, request) => loadWithin('subscription', request, loadSubscription),
        neededBy: 'handle',
      },
      handle: async (_deps, { target }) => ({
        data: toSubscriptionRow(target.subscription),
        message: 'Subscription.',
        changed: [{ id: target.subscription.id, account: target.webhook.account }],
      }),
    },
  ),
  defineRoute(
    {
      method: 'PATCH',
      path: '/api/v3/webhook/webhook-event/{id}',
      resource: 'webhook-event',
      action: 'update',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Move a subscription to another event type',
      description:
        'Unsubscribes from the one and subscribes to the other. The answer is the new link, with an id of its own.',
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
      method: 'DELETE',
      path: '/api/v3/webhook/webhook-event/{id}',
      resource: 'webhook-event',
      action: 'delete',
      accountScope: 'account',
      ownAccounts: true,
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
