import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ContractFixture,
  expectProblem,
  type Json,
  NO_ONE,
  startContractFixture,
} from '../../../test/contract/contract-fixture.ts'
import type { AccountId, DispatchId, EventId, WebhookId } from '../../base/id.ts'
import type { StoredEvent } from '../../event/occurrence/event.store.ts'
import type { ExplainedEvent, ExplainedWebhook } from './routing-explanation.store.ts'
import { EXPLAINED_WEBHOOKS_LIMIT, explainWebhook } from './routing-explanation.ts'

const at = (minute: number) => new Date(Date.UTC(2026, 8, 11, 12, minute))
const ACCOUNT = 'account' as AccountId

const event: StoredEvent & ExplainedEvent = {
  id: 'event' as EventId,
  type: 'contract.create',
  account: ACCOUNT,
  resource: 'contract',
  action: 'create',
  resourceId: 'c',
  url: null,
  isPurge: false,
  excludedWebhook: null,
  trace: null,
  createdAt: at(10),
  ordinal: 10,
  routedAt: at(10),
}
const webhook: ExplainedWebhook = {
  id: 'webhook' as WebhookId,
  name: null,
  isGlobal: false,
  account: ACCOUNT,
  resourceIds: null,
  isActived: true,
  disabledReason: null,
  createdAt: at(0),
  ordinal: 0,
  deletedAt: null,
  link: { createdAt: at(0), updatedAt: at(0), deletedAt: null },
  dispatch: null,
}
const link = (created: number, updated: number, deleted?: number) => ({
  createdAt: at(created),
  updatedAt: at(updated),
  deletedAt: deleted === undefined ? null : at(deleted),
})

function explain(change: {
  event?: Partial<StoredEvent>
  webhook?: Partial<ExplainedWebhook>
  eventType?: { accountScope: 'account' | 'none'; isActived: boolean } | undefined
}) {
  return explainWebhook({
    event: { ...event, ...change.event },
    webhook: { ...webhook, ...change.webhook },
    eventType: 'eventType' in change ? change.eventType : { accountScope: 'account', isActived: true },
    now: at(30),
  })
}

describe('an event at a webhook without a ledger row', () => {
  test.each([
    ['not routed yet', { event: { routedAt: null } }, 'waiting', 'not routed yet'],
    ['would match now, and did not then', {}, 'changed_since', 'Past events are not sent again'],
    [
      'inactive',
      { webhook: { isActived: false, disabledReason: 'consecutive-failures' } },
      'inactive',
      'consecutive-failures',
    ],
    ['never subscribed', { webhook: { link: null } }, 'not_subscribed', 'PUT /api/v3/webhook/webhook/webhook/events'],
    ['subscribed after the routing', { webhook: { link: link(11, 11) } }, 'not_subscribed', 'did not subscribe'],
    ['subscribed again after the routing', { webhook: { link: link(0, 11) } }, 'not_subscribed', 'did not subscribe'],
    ['subscribed at the very instant of the routing', { webhook: { link: link(10, 10) } }, 'changed_since', 'next one'],
    ['unsubscribed before the routing', { webhook: { link: link(0, 9, 9) } }, 'not_subscribed', 'did not subscribe'],
    ['unsubscribed after the routing', { webhook: { link: link(0, 11, 11) } }, 'changed_since', 'next one'],
    [
      'of a type that is off',
      { eventType: { accountScope: 'account', isActived: false } },
      'not_subscribed',
      'is inactive',
    ],
    ['of a type that is gone', { eventType: undefined }, 'not_subscribed', 'no longer in the catalogue'],
    ['of another account', { webhook: { account: 'other' as AccountId } }, 'other_account', 'belongs to account other'],
    ['of no account', { event: { account: null } }, 'other_account', 'the event to none'],
    ['of another resource', { webhook: { resourceIds: ['d', 'e'] } }, 'other_resource', '2 resources only'],
    ['of one other resource', { webhook: { resourceIds: ['d'] } }, 'other_resource', 'one resource only'],
    ['of this resource', { webhook: { resourceIds: ['d', 'c'] } }, 'changed_since', 'next one'],
    ['about no resource', { event: { resourceId: null }, webhook: { resourceIds: ['c'] } }, 'other_resource', 'none'],
    ['without an owner', { eventType: { accountScope: 'none', isActived: true } }, 'no_owner', 'Use a global webhook'],
    ['a purge', { event: { isPurge: true, account: null } }, 'purge', 'global webhooks only'],
    ['created after the event', { webhook: { createdAt: at(11), ordinal: 11 } }, 'created_later', 'after the event'],
    ['the event is about it', { event: { excludedWebhook: 'webhook' as WebhookId } }, 'excluded', 'about this webhook'],
    ['a test of another webhook', { event: { type: 'webhook.test' } }, 'excluded', '/webhook/webhook/webhook/test'],
    ['deleted before the routing', { webhook: { deletedAt: at(9) } }, 'deleted', 'was deleted at'],
    ['deleted as it was routed', { webhook: { deletedAt: at(10), isActived: false } }, 'deleted', 'was deleted at'],
    ['deleted after, and inactive', { webhook: { deletedAt: at(11), isActived: false } }, 'inactive', 'is inactive'],
    [
      'deleted after the routing, for all that is known',
      { webhook: { deletedAt: at(11) } },
      'deleted',
      'was deleted at',
    ],
    [
      'deleted after, and of another account',
      { webhook: { deletedAt: at(11), account: null } },
      'other_account',
      'account',
    ],
  ] as const)('%s', (_name, change, verdict, words) => {
    const explained = explain(change)
    expect(explained).toMatchObject({ verdict, basis: 'current_state' })
    expect(explained.reason).toContain(words)
  })
})

describe('an event at a webhook with a ledger row', () => {
  test.each([
    ['success', 'delivered', 'Delivered after 2 POSTs'],
    ['pending', 'waiting', 'first POST'],
    ['retrying', 'waiting', 'http_5xx'],
    ['exhausted', 'failed', '/api/v3/webhook/dispatch/row/replay'],
    ['failed', 'failed', 'http_5xx'],
    ['cancelled', 'cancelled', 'was deleted before'],
  ] as const)('%s is told from the row alone, whatever the webhook is now', (status, verdict, words) => {
    const dispatch = { id: 'row' as DispatchId, status, attempts: 2, lastError: 'http_5xx' }
    const explained = explain({ webhook: { dispatch, isActived: false, link: null, deletedAt: at(1) } })
    expect(explained).toMatchObject({ verdict, basis: 'ledger' })
    expect(explained.reason).toContain(words)
  })

  test('a replay of a delivered row waits without an error', () => {
    const dispatch = { id: 'row' as DispatchId, status: 'retrying' as const, attempts: 1, lastError: null }
    expect(explain({ webhook: { dispatch } }).reason).toContain('after one POST (last error: none)')
  })
})

describe('asking why an event was or was not delivered', () => {
  let fixture: ContractFixture
  let account: string
  beforeAll(async () => {
    fixture = await startContractFixture()
    account = (await fixture.createAccount()).document_id
  })
  afterAll(() => fixture[Symbol.asyncDispose]())

  const eventOf = async (resource: string) => {
    const path = `/api/v3/webhook/event-occurrence?filters=resource_id|eq|${resource}&filters=event|eq|contract.create`
    return (await fixture.app.admin('GET', path)).body.data[0].document_id
  }
  const routingPath = (id: string) => `/api/v3/webhook/event-occurrence/${id}/routing`
  const ask = async (id: string, query = '') => (await fixture.app.admin('GET', `${routingPath(id)}${query}`)).body.data

  test('tells it for every webhook, those with a row first, with a count of each verdict', async () => {
    const good = await fixture.createWebhook({ account }, ['contract.create'])
    const unsubscribed = await fixture.createWebhook({ account }, ['contract.update'])
    const stranger = await fixture.createWebhook({ account: (await fixture.createAccount()).document_id }, [
      'contract.create',
    ])
    const asleep = await fixture.createWebhook({ is_global: true }, ['contract.create'])
    await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${asleep.id}/active`, { is_actived: false })
    const gone = await fixture.createWebhook({ account }, ['contract.create'])
    await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${gone.id}`)
    const id = await eventOf(await fixture.makeChange(account))
    const early: Json = await ask(id)
    expect(early.routed_at).toBeNull()
    expect(early.webhooks.find((webhook: Json) => webhook.webhook === good.id)).toMatchObject({
      verdict: 'waiting',
      basis: 'current_state',
      dispatch: null,
    })
    await fixture.app.settle()
    fixture.app.clock.advance(60_000)
    const later = await fixture.createWebhook({ account }, ['contract.create'])
    const told: Json = await ask(id)
    const verdicts = Object.fromEntries(told.webhooks.map((webhook: Json) => [webhook.webhook, webhook.verdict]))
    expect(verdicts).toEqual({
      [good.id]: 'delivered',
      [unsubscribed.id]: 'not_subscribed',
      [stranger.id]: 'other_account',
      [asleep.id]: 'inactive',
      [gone.id]: 'deleted',
      [later.id]: 'created_later',
    })
    const [row] = await fixture.readLedger(good)
    expect(told).toMatchObject({
      event_id: id,
      event: 'contract.create',
      account,
      routed_at: expect.any(String),
      judged_at: new Date(fixture.app.clock.now()).toISOString(),
      truncated: false,
      summary: { delivered: 1, not_subscribed: 1, other_account: 1, inactive: 1, deleted: 1, created_later: 1 },
    })
    expect(told.webhooks[0]).toEqual({
      webhook: good.id,
      name: null,
      is_global: false,
      account,
      is_actived: true,
      verdict: 'delivered',
      basis: 'ledger',
      reason: 'Delivered after one POST.',
      dispatch: row.document_id,
      dispatch_status: 'success',
    })
    for (const webhook of told.webhooks) expect(webhook.reason).toMatch(/\.$/)
    expect((await ask(id, `?webhook=${asleep.id}`)).webhooks).toMatchObject([
      { webhook: asleep.id, verdict: 'inactive' },
    ])
    expect((await ask(id, `?webhook=${NO_ONE}`)).webhooks).toEqual([])
  })

  test('a test event is explained to the webhooks that it was not for', async () => {
    const asked = await fixture.createWebhook({ is_global: true })
    const other = await fixture.createWebhook({ is_global: true })
    const made = await fixture.app.admin('POST', `/api/v3/webhook/webhook/${asked.id}/test`)
    await fixture.app.settle()
    const told = await ask(made.body.data.event_id)
    const verdictOf = (id: string) => told.webhooks.find((webhook: Json) => webhook.webhook === id)?.verdict
    expect([verdictOf(asked.id), verdictOf(other.id)]).toEqual(['delivered', 'excluded'])
  })

  test('holds 1,000 webhooks and says when there are more', async () => {
    const id = await eventOf(await fixture.makeChange(account))
    const { rows } = await fixture.app.database.pool.query('select count(*)::int as n from webhook')
    const add = (count: number) =>
      fixture.app.database.pool.query(
        `insert into webhook (document_id, url, is_global, created_at, updated_at)
         select gen_random_uuid(), 'https://example.com/', true, $1, $1 from generate_series(1, $2::int)`,
        [new Date(fixture.app.clock.now()), count],
      )
    await add(EXPLAINED_WEBHOOKS_LIMIT - rows[0].n)
    const all = await ask(id)
    expect([all.webhooks.length, all.truncated]).toEqual([EXPLAINED_WEBHOOKS_LIMIT, false])
    await add(1)
    const cut = await ask(id)
    expect([cut.webhooks.length, cut.truncated]).toEqual([EXPLAINED_WEBHOOKS_LIMIT, true])
  })

  test('refuses nobody, a member, an unknown event and a webhook that is no id', async () => {
    const id = await eventOf(await fixture.makeChange(account))
    expectProblem(await fixture.app.anonymous('GET', routingPath(id)), 401, 'unauthenticated')
    const { call } = await fixture.app.signInMember()
    const refused = expectProblem(await call('GET', routingPath(id)), 403, 'permission_denied')
    expect(refused.detail).toContain('event-occurrence:routing')
    expectProblem(await fixture.app.admin('GET', routingPath(NO_ONE)), 404, 'not_found')
    expectProblem(await fixture.app.admin('GET', `${routingPath(id)}?webhook=x`), 422, 'validation_failed')
  })
})

test('with no webhook at all there is an empty explanation, not an error', async () => {
  await using fixture = await startContractFixture()
  const resource = await fixture.makeChange((await fixture.createAccount()).document_id)
  const list = await fixture.app.admin('GET', `/api/v3/webhook/event-occurrence?filters=resource_id|eq|${resource}`)
  const answer = await fixture.app.admin(
    'GET',
    `/api/v3/webhook/event-occurrence/${list.body.data[0].document_id}/routing`,
  )
  expect(answer).toMatchObject({
    status: 200,
    body: { data: { webhooks: [], summary: {} }, message: 'There is no webhook.' },
  })
})
