import { describe, expect, test } from 'vitest'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { decideRouting, type RoutedEvent, type RoutedWebhook, type RoutingVerdict } from './routing.ts'

const ACCOUNT = 'account-a' as AccountId
const OTHER_ACCOUNT = 'account-b' as AccountId
const WEBHOOK = 'webhook-a' as WebhookId
const RESOURCE = 'resource-a'
const OTHER_WEBHOOK = 'webhook-b' as WebhookId
const NOW_MS = Date.UTC(2026, 8, 11, 12)

function event(change: Partial<RoutedEvent> = {}): RoutedEvent {
  return {
    accountScope: 'account',
    account: ACCOUNT,
    isPurge: false,
    excludedWebhook: null,
    resourceId: RESOURCE,
    createdAt: new Date(NOW_MS),
    ordinal: 10,
    ...change,
  }
}

function webhook(change: Partial<RoutedWebhook> = {}): RoutedWebhook {
  return {
    id: WEBHOOK,
    isGlobal: false,
    account: ACCOUNT,
    resourceIds: null,
    isActived: true,
    deletedAt: null,
    createdAt: new Date(NOW_MS - 1000),
    ordinal: 9,
    isSubscribed: true,
    ...change,
  }
}

const global = { isGlobal: true, account: null }
const purge = { isPurge: true, account: null }

const TABLE: [string, Partial<RoutedEvent>, Partial<RoutedWebhook>, RoutingVerdict][] = [
  ['the owner matches', {}, {}, 'deliver'],
  ['another account owns it', { account: OTHER_ACCOUNT }, {}, 'other_account'],
  ['an account event without an owner', { account: null }, {}, 'other_account'],
  ['neither the event nor the webhook has an account', { account: null }, { account: null }, 'other_account'],
  [
    'no event type of the scope none reaches an account webhook',
    { accountScope: 'none', account: null },
    {},
    'no_owner',
  ],
  ['the scope none wins over an account that is set', { accountScope: 'none' }, {}, 'no_owner'],
  ['a purge never reaches an account webhook', purge, {}, 'purge'],
  ['a purge never reaches it, its account set or not', { isPurge: true }, {}, 'purge'],
  ['a global webhook gets what an account owns', {}, global, 'deliver'],
  ['a global webhook gets what has no owner', { accountScope: 'none', account: null }, global, 'deliver'],
  ['a global webhook gets a purge', purge, global, 'deliver'],
  ['a global webhook ignores its account', { account: OTHER_ACCOUNT }, { isGlobal: true }, 'deliver'],
  ['an inactive webhook', {}, { isActived: false }, 'inactive'],
  ['an inactive global webhook', {}, { ...global, isActived: false }, 'inactive'],
  ['a webhook that does not subscribe', {}, { isSubscribed: false }, 'not_subscribed'],
  ['a global webhook that does not subscribe', {}, { ...global, isSubscribed: false }, 'not_subscribed'],
  ['a deleted webhook', {}, { deletedAt: new Date(NOW_MS) }, 'deleted'],
  ['a webhook that was recorded just before', {}, { ordinal: 9 }, 'deliver'],
  ['a webhook that was recorded just after', {}, { ordinal: 11 }, 'created_later'],
  [
    'a webhook recorded before by a process whose clock is ahead',
    {},
    { createdAt: new Date(NOW_MS + 3_000) },
    'deliver',
  ],
  [
    'a webhook recorded after by a process whose clock is behind',
    {},
    { createdAt: new Date(0), ordinal: 11 },
    'created_later',
  ],
  ['no ordinal, a webhook of the same millisecond', { ordinal: null }, { createdAt: new Date(NOW_MS) }, 'deliver'],
  ['no ordinal, a webhook of the next one', { ordinal: null }, { createdAt: new Date(NOW_MS + 1) }, 'created_later'],
  ['the webhook that the event is about', { excludedWebhook: WEBHOOK }, global, 'excluded'],
  ['another webhook than the event is about', { excludedWebhook: OTHER_WEBHOOK }, global, 'deliver'],
  ['a webhook of that resource', {}, { resourceIds: [RESOURCE] }, 'deliver'],
  ['a webhook of that resource among others', {}, { resourceIds: ['resource-b', RESOURCE] }, 'deliver'],
  ['a webhook of another resource', {}, { resourceIds: ['resource-b'] }, 'other_resource'],
  ['a resource whose id begins alike', {}, { resourceIds: ['resource-', 'resource-aa'] }, 'other_resource'],
  ['a webhook of a resource, for an event about none', { resourceId: null }, { resourceIds: [''] }, 'other_resource'],
  ['an event about no resource', { resourceId: null }, {}, 'deliver'],
  ['a global webhook of another resource', {}, { ...global, resourceIds: ['resource-b'] }, 'other_resource'],
  ['a purge of another resource', purge, { ...global, resourceIds: ['resource-b'] }, 'other_resource'],
  ['a purge of that resource', purge, { ...global, resourceIds: [RESOURCE] }, 'deliver'],
  ['of another account and resource', { account: OTHER_ACCOUNT }, { resourceIds: ['resource-b'] }, 'other_account'],
]

describe('decideRouting', () => {
  test.each(TABLE)('%s', (_name, eventChange, webhookChange, verdict) => {
    expect(decideRouting(event(eventChange), webhook(webhookChange))).toBe(verdict)
  })

  test('delivers only when not one of the other reasons holds', () => {
    const flags = [false, true]
    for (const isGlobal of flags)
      for (const isActived of flags)
        for (const isSubscribed of flags)
          for (const isPurge of flags)
            for (const accountScope of ['account', 'none'] as const)
              for (const account of [ACCOUNT, OTHER_ACCOUNT, null])
                for (const isLater of flags)
                  for (const isDeleted of flags)
                    for (const isExcluded of flags) {
                      const verdict = decideRouting(
                        event({ accountScope, account, isPurge, excludedWebhook: isExcluded ? WEBHOOK : null }),
                        webhook({
                          isGlobal,
                          isActived,
                          isSubscribed,
                          ordinal: isLater ? 11 : 9,
                          deletedAt: isDeleted ? new Date(NOW_MS) : null,
                        }),
                      )
                      const matches = isGlobal || (!isPurge && accountScope === 'account' && account === ACCOUNT)
                      const may = isActived && isSubscribed && !isLater && !isDeleted && !isExcluded
                      expect(verdict === 'deliver').toBe(matches && may)
                    }
  })
})
