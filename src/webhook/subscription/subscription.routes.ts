import { toEventTypeRow } from '../../event/catalogue/event-type.ts'
import { describeRowChange } from '../../event/recording/row-change.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead, defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { selectSubscriptions } from '../event-set/subscription.store.ts'
import {
  type ChangedSubscription,
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
import { checkMaySubscribe, checkNewSubscription, loadWithin, lockRoom, rowWithin } from '../reach/account-reach.ts'
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

const SETTABLE = ['events'] as const

/** The changed resource of an event set: its webhook, read at the path of the set. */
const changedSetOf = ({ webhook: { id, account } }: WebhookEventSet) => [
  { id, account, url: `/api/v3/webhook/webhook/${id}/events` },
]

const OF_WEBHOOK_EVENT = {
  resource: 'webhook-event',
  accountScope: 'account',
  ownAccounts: true,
  params: IdParams,
} as const

const OF_EVENT_SET = {
  ...OF_WEBHOOK_EVENT,
  path: '/api/v3/webhook/webhook/{id}/events',
  cell: BY_WEBHOOK,
  rowTag: SETTABLE,
  data: EventSet,
} as const

/** A subscription with its owner, that of its webhook. */
const withOwner = ({ subscription, webhook }: Pick<ChangedSubscription, 'subscription' | 'webhook'>) => ({
  ...subscription,
  account: webhook.account,
})

const subscription = defineRow(
  {
    ...OF_WEBHOOK_EVENT,
    path: '/api/v3/webhook/webhook-event/{id}',
    cell: BY_SUBSCRIPTION,
    data: SubscriptionRow,
  },
  {
    noun: 'Subscription',
    load: async (request) => withOwner(await loadWithin('subscription', request, loadSubscription)),
    row: rowWithin('subscription'),
    toRow: toSubscriptionRow,
  },
)

export const subscriptionRoutes: Routes<WebhookDeps> = [
  defineRead(
    {
      ...OF_EVENT_SET,
      action: 'find-set',
      summary: "Read a webhook's event set",
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
      ...OF_EVENT_SET,
      method: 'PUT',
      action: 'set',
      summary: "Replace a webhook's event set",
      description: 'The full desired list. `webhook.test` is prepended; ids absent from the body are unsubscribed.',
      body: EventSetBody,
      problems: ['limit_reached'],
    },
    {
      row: rowWithin('webhook'),
      handle: async (deps: WebhookDeps, { db, params, scope, body, now }) => {
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
  subscription.create(
    {
      cell: BY_NAMED_WEBHOOK,
      summary: 'Subscribe a webhook to an event type',
      body: CreateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['limit_reached'],
    },
    async (deps: WebhookDeps, { db, scope, body, now }) => {
      await checkNewSubscription(db, scope, body)
      const room = await lockRoom(deps, db, { scope, webhook: body.webhook })
      const { warnings, ...made } = await subscribe(deps, db, { ...body, now })
      room?.checkOwner(made.webhook.account)
      room?.check('subscriptions', 1)
      return { row: withOwner(made), more: { warnings }, message: sayWarnings('Subscribed.', warnings) }
    },
  ),
  defineList(
    {
      resource: 'webhook-event',
      path: '/api/v3/webhook/webhook-event',
      ownAccounts: true,
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
  subscription.read({ summary: 'Read one subscription' }),
  subscription.update(
    {
      summary: 'Move a subscription to another event type',
      description:
        'Unsubscribes from the current event type and subscribes to the new one. The answer is the new link, with its own id.',
      body: UpdateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['conflict'],
    },
    async (deps: WebhookDeps, { db, params, scope, body, now }) => {
      await checkMaySubscribe(db, scope, { webhook: null, events: [body.event], pathOf: () => 'event' })
      const change = { id: params.id, event: body.event, now }
      const { warnings, isChanged, ...moved } = await changeSubscription(deps, db, change)
      const message = sayWarnings(isChanged ? 'Subscription moved.' : 'Subscription unchanged.', warnings)
      return { row: withOwner(moved), more: { warnings }, isChanged, message }
    },
  ),
  subscription.delete(
    { summary: 'Unsubscribe (soft)', problems: ['conflict'] },
    async (_deps, { db, params, now }) => ({
      row: withOwner(await unsubscribe(db, params.id, now)),
      message: 'Unsubscribed.',
    }),
  ),
]
