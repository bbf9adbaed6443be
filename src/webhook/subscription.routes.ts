import { toEventTypeRow } from '../catalogue/catalogue.schema.ts'
import { invalidField } from '../http/problem.ts'
import { defineRoute, type Routes } from '../http/route.ts'
import { IdParams } from '../http/schema.ts'
import { readPage } from '../listing/page.ts'
import type { Database } from '../postgres/database.ts'
import { selectSubscriptions, toSubscriptionRecord } from './subscription.store.ts'
import {
  changeSubscription,
  loadSubscription,
  readEventSet,
  replaceEventSet,
  subscribe,
  unsubscribe,
} from './subscription.ts'
import {
  CreateSubscriptionBody,
  EventSet,
  EventSetBody,
  SubscriptionRow,
  SubscriptionWithWarnings,
  toSubscriptionRow,
  UpdateSubscriptionBody,
} from './webhook.schema.ts'
import { findWebhook, type WebhookRecord } from './webhook.store.ts'
import { loadWebhook, type WebhookDeps } from './webhook.ts'

const SUBSCRIPTION_FIELDS = {
  document_id: { type: 'uuid' },
  webhook: { type: 'uuid' },
  event: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const subscriptionRowOf = (row: Parameters<typeof toSubscriptionRecord>[0]) =>
  toSubscriptionRow(toSubscriptionRecord(row))

/** A subscription with the webhook it belongs to; a 404 when either is gone. */
async function loadSubscriptionAndWebhook(db: Database, id: string) {
  const subscription = await loadSubscription(db, id)
  return { subscription, webhook: await loadWebhook(db, subscription.webhook) }
}

/** The same, to change it: changes of one webhook's set follow each other, so what was found is looked for again. */
async function lockSubscriptionAndWebhook(db: Database, id: string) {
  const found = await loadSubscription(db, id)
  const webhook = await loadWebhook(db, found.webhook, { lock: true })
  return { subscription: await loadSubscription(db, id), webhook }
}

function toEventSet(webhook: WebhookRecord, set: Awaited<ReturnType<typeof readEventSet>>) {
  return { webhook: webhook.id, events: set.events.map(toEventTypeRow), warnings: set.warnings }
}

function sayWarnings(message: string, warnings: readonly { message: string }[]): string {
  return [message, ...warnings.map((warning) => warning.message)].join(' ')
}

export const subscriptionRoutes: Routes<WebhookDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook/{id}/events',
      resource: 'webhook-event',
      action: 'find-set',
      accountScope: 'account',
      summary: "Read a webhook's event set",
      params: IdParams,
      data: EventSet,
    },
    {
      load: (_deps: WebhookDeps, { db, params }) => loadWebhook(db, params.id),
      handle: async (_deps, { db, target }) => ({
        data: toEventSet(target, await readEventSet(db, target)),
        message: 'Event set.',
        changed: [{ id: target.id, account: target.account, url: `/api/v3/webhook/webhook/${target.id}/events` }],
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
      summary: "Replace a webhook's event set",
      description: 'The full desired list. `webhook.test` is prepended; ids absent from the body are unsubscribed.',
      params: IdParams,
      body: EventSetBody,
      data: EventSet,
    },
    {
      load: (_deps: WebhookDeps, { db, params }) => loadWebhook(db, params.id, { lock: true }),
      handle: async (deps, { db, target, body, now }) => {
        const set = await replaceEventSet(deps, db, target, { events: body.events, now })
        return {
          data: toEventSet(target, set),
          message: sayWarnings(set.isChanged ? 'Event set replaced.' : 'The event set is the same.', set.warnings),
          changed: set.isChanged
            ? [{ id: target.id, account: target.account, url: `/api/v3/webhook/webhook/${target.id}/events` }]
            : [],
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
      summary: 'Subscribe a webhook to an event type',
      body: CreateSubscriptionBody,
      data: SubscriptionWithWarnings,
    },
    {
      handle: async (deps: WebhookDeps, { db, body, now }) => {
        const webhook = await findWebhook(db, body.webhook, { lock: true })
        if (!webhook)
          throw invalidField('webhook', 'unknown_webhook', 'is no webhook; GET /api/v3/webhook/webhook lists them')
        const { subscription, warnings } = await subscribe(deps, db, webhook, { event: body.event, now })
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
      summary: 'List subscriptions',
      data: SubscriptionRow,
      list: SUBSCRIPTION_FIELDS,
    },
    {
      handle: async (_deps: WebhookDeps, { db, listing }) => ({
        ...(await readPage(selectSubscriptions(db), {
          listing,
          fields: SUBSCRIPTION_FIELDS,
          toRow: subscriptionRowOf,
        })),
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
      summary: 'Read one subscription',
      params: IdParams,
      data: SubscriptionRow,
    },
    {
      load: (_deps: WebhookDeps, { db, params }) => loadSubscriptionAndWebhook(db, params.id),
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
      summary: 'Move a subscription to another event type',
      description:
        'Unsubscribes from the one and subscribes to the other. The answer is the new link, with an id of its own.',
      params: IdParams,
      body: UpdateSubscriptionBody,
      data: SubscriptionWithWarnings,
      problems: ['conflict'],
    },
    {
      load: (_deps: WebhookDeps, { db, params }) => lockSubscriptionAndWebhook(db, params.id),
      handle: async (deps, { db, target, body, now }) => {
        const moved = await changeSubscription(deps, db, { ...target, event: body.event, now })
        const { subscription, warnings, isChanged } = moved
        return {
          data: { ...toSubscriptionRow(subscription), warnings },
          message: sayWarnings(isChanged ? 'Subscription moved.' : 'The subscription is the same.', warnings),
          changed: isChanged ? [{ id: subscription.id, account: target.webhook.account }] : [],
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
      summary: 'Unsubscribe (soft)',
      params: IdParams,
      data: SubscriptionRow,
      problems: ['conflict'],
    },
    {
      load: (_deps: WebhookDeps, { db, params }) => lockSubscriptionAndWebhook(db, params.id),
      handle: async (_deps, { db, target, now }) => ({
        data: toSubscriptionRow(await unsubscribe(db, target.subscription, now)),
        message: 'Unsubscribed.',
        changed: [{ id: target.subscription.id, account: target.webhook.account }],
      }),
    },
  ),
]
