import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ContractFixture,
  expectProblem,
  type Json,
  NO_ONE,
  startContractFixture,
} from '../../../test/contract/contract-fixture.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import type { ExplainedWebhook } from './routing-explanation.store.ts'
import { FORECAST_WEBHOOKS_LIMIT, forecastWebhook } from './routing-forecast.ts'

const NOW = new Date(Date.UTC(2026, 8, 11, 12))
const ACCOUNT = 'account' as AccountId

const webhook: ExplainedWebhook = {
  id: 'webhook' as WebhookId,
  name: null,
  isGlobal: false,
  account: ACCOUNT,
  resourceIds: null,
  isActived: true,
  disabledReason: null,
  createdAt: NOW,
  ordinal: 7,
  deletedAt: null,
  link: { createdAt: NOW, updatedAt: NOW, deletedAt: null },
  dispatch: null,
}
const GLOBAL = { isGlobal: true, account: null }

function forecast(change: {
  type?: string
  webhook?: Partial<ExplainedWebhook>
  eventType?: { accountScope: 'account' | 'none'; isActived: boolean }
  account?: AccountId | null
  resourceId?: string
}) {
  return forecastWebhook({
    type: change.type ?? 'contract.create',
    eventType: change.eventType ?? { accountScope: 'account', isActived: true },
    webhook: { ...webhook, ...change.webhook },
    account: change.account === undefined ? ACCOUNT : change.account,
    resourceId: change.resourceId ?? null,
    now: NOW,
  })
}

test.each([
  ['of its account', {}, 'deliver', 'of this account'],
  ['at a global webhook', { webhook: GLOBAL }, 'deliver', 'global'],
  ['without an owner at a global webhook', { webhook: GLOBAL, account: null }, 'deliver', 'global'],
  ['of another account', { account: 'other' as AccountId }, 'other_account', 'the event to other'],
  ['of no account', { account: null }, 'other_account', 'the event to none'],
  ['not subscribed', { webhook: { link: null } }, 'not_subscribed', 'PUT /api/v3/webhook/webhook/webhook/events'],
  [
    'unsubscribed',
    { webhook: { link: { createdAt: NOW, updatedAt: NOW, deletedAt: NOW } } },
    'not_subscribed',
    'does not subscribe',
  ],
  ['of a type that is off', { eventType: { accountScope: 'account', isActived: false } }, 'not_subscribed', 'inactive'],
  ['inactive', { webhook: { isActived: false, disabledReason: 'consecutive-failures' } }, 'inactive', 'consecutive'],
  [
    'of a type without an owner',
    { eventType: { accountScope: 'none', isActived: true } },
    'no_owner',
    'global webhook',
  ],
  ['a purge', { type: 'webhook.purge' }, 'purge', 'global webhooks only'],
  ['a purge at a global webhook', { type: 'webhook.purge', webhook: GLOBAL }, 'deliver', 'global'],
  ['a test', { type: 'webhook.test' }, 'excluded', '/webhook/webhook/webhook/test'],
  ['of its resource', { webhook: { resourceIds: ['r'] }, resourceId: 'r' }, 'deliver', 'of this account'],
  ['of another resource', { webhook: { resourceIds: ['r'] }, resourceId: 's' }, 'other_resource', 'only, not of s'],
  ['of no named resource', { webhook: { resourceIds: ['r'] } }, 'other_resource', 'as resource_id'],
  ['deleted', { webhook: { deletedAt: NOW } }, 'deleted', 'deleted'],
] as const)('an event %s: %j is %s', (_name, change, verdict, words) => {
  const { verdict: found, reason } = forecast(change)
  expect([found, reason]).toEqual([verdict, expect.stringContaining(words)])
})

describe('over the API', () => {
  let fixture: ContractFixture
  let account: string
  let eventType: string
  beforeAll(async () => {
    fixture = await startContractFixture()
    account = (await fixture.createAccount()).document_id
    eventType = (await fixture.findEventIds(['contract.create']))[0] as string
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  const read = async (query: Record<string, string>, id = eventType): Promise<Json> =>
    fixture.app.admin('GET', `/api/v3/webhook/event/${id}/routing?${new URLSearchParams(query)}`)
  const verdicts = async (query: Record<string, string>) =>
    Object.fromEntries(
      (await read(query)).body.data.webhooks.map((webhook: Json) => [webhook.webhook, webhook.verdict]),
    )

  test('lists the webhooks of the account and the global ones, and nobody else', async () => {
    const other = (await fixture.createAccount()).document_id
    const own = await fixture.createWebhook({ account }, ['contract.create'])
    const quiet = await fixture.createWebhook({ account })
    const global = await fixture.createWebhook({ is_global: true }, ['contract.create'])
    const foreign = await fixture.createWebhook({ account: other }, ['contract.create'])
    expect(await verdicts({ account })).toEqual({
      [own.id]: 'deliver',
      [quiet.id]: 'not_subscribed',
      [global.id]: 'deliver',
    })
    expect(await verdicts({})).toEqual({ [global.id]: 'deliver' })
    expect(await verdicts({ account, webhook: foreign.id })).toEqual({ [foreign.id]: 'other_account' })
    const { message, data } = (await read({ account })).body
    expect([message, data.event, data.truncated]).toEqual([
      '2 of 3 webhooks would receive it.',
      'contract.create',
      false,
    ])
    // The forecast comes true.
    await fixture.makeChange(account)
    await fixture.app.settle()
    const got = [own, quiet, global, foreign].map((item) => fixture.received(item).length)
    expect(got).toEqual([1, 0, 1, 0])
    await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${own.id}`)
    expect(await verdicts({ account })).toEqual({ [quiet.id]: 'not_subscribed', [global.id]: 'deliver' })
  })

  test('takes the resource of the event', async () => {
    const owner = (await fixture.createAccount()).document_id
    const of = await fixture.createWebhook({ account: owner, resource_ids: ['r'] }, ['contract.create'])
    const ask = (more: object) => verdicts({ account: owner, webhook: of.id, ...more })
    expect(await ask({ resource_id: 'r' })).toEqual({ [of.id]: 'deliver' })
    expect(await ask({ resource_id: 's' })).toEqual({ [of.id]: 'other_resource' })
    expect(await ask({})).toEqual({ [of.id]: 'other_resource' })
    expectProblem(await read({ resource_id: 'r'.repeat(256) }), 422, 'validation_failed')
  })

  test('ends at its limit, and says so', async () => {
    const crowded = (await fixture.createAccount()).document_id
    const insert = (count: number) =>
      fixture.app.database.pool.query(
        `insert into webhook (document_id, url, account, created_at, updated_at)
         select gen_random_uuid(), 'https://example.com/' || n, $1, now(), now() from generate_series(1, $2::int) n`,
        [crowded, count],
      )
    const { rows } = await fixture.app.database.pool.query('select from webhook where is_global and deleted_at is null')
    await insert(FORECAST_WEBHOOKS_LIMIT - rows.length)
    const ofCrowd = async () => (await read({ account: crowded })).body.data
    expect((await ofCrowd()).truncated).toBe(false)
    await insert(1)
    const { truncated, webhooks } = await ofCrowd()
    expect([truncated, webhooks.length]).toEqual([true, FORECAST_WEBHOOKS_LIMIT])
  })

  test('refuses an event type that is not there, an id that is none, and who lacks the permission', async () => {
    expectProblem(await read({ account }, NO_ONE), 404, 'not_found')
    expectProblem(await read({ account: 'acme' }), 422, 'validation_failed')
    const path = `/api/v3/webhook/event/${eventType}/routing`
    expectProblem(await fixture.app.anonymous('GET', path), 401, 'unauthenticated')
    const { call } = await fixture.signInWithRoles([account], ['account-admin'])
    expectProblem(await call('GET', path), 403, 'permission_denied')
  })
})
