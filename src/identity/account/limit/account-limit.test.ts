import { beforeAll, describe, expect, test } from 'vitest'
import { type Json, startContractFixture } from '../../../../test/contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../../../../test/harness/app/app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const HOOKS = '/api/v3/webhook/webhook'
const LINKS = '/api/v3/webhook/webhook-event'
const PUBLISH = '/api/v3/webhook/publish'

/** A developer and publisher of the account. */
let tenant: TestCall
let account: string

const limitPath = (id = account) => `/api/v3/identity/account/${id}/limit`
const setLimit = async (limits: object) => {
  const answer = await fixture.app.admin('PATCH', limitPath(), limits)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}
const createHook = (path: string, call = tenant) =>
  call('POST', HOOKS, { url: `${fixture.receiver.origin}/${path}`, account })
const publish = (count: number, call = tenant): Promise<TestAnswer> => {
  const events = Array.from({ length: count }, (_, index) => ({ event: 'order.paid', account, id: `o-${index}` }))
  return call('POST', PUBLISH, { events })
}

const fixture = await openForFile(
  startContractFixture({ env: { ACCOUNT_WEBHOOKS_LIMIT: '2', ACCOUNT_SUBSCRIPTIONS_LIMIT: '3' } }),
)
await fixture.app.admin('POST', '/api/v3/webhook/event', { internal: 'order.paid', is_tenant_visible: true })

/** Starts each group with an account of its own. */
const startAccount = async () => {
  account = (await fixture.createAccount()).document_id
  const roles = ['account-developer', 'account-publisher', 'account-viewer']
  tenant = (await fixture.signInWithRoles([account], roles)).call
}

describe('the limits of rows', () => {
  beforeAll(startAccount)

  test('refuse one webhook more with the name of the limit, and count no deleted one', async () => {
    const first = await createHook('one')
    expect(first.status).toBe(201)
    expect((await createHook('two')).status).toBe(201)
    expect(await createHook('three')).toMatchObject({
      status: 409,
      body: { code: 'limit_reached', limit: { name: 'webhooks', value: 2, account } },
    })
    await tenant('DELETE', `${HOOKS}/${first.body.data.document_id}`)
    expect((await createHook('three')).status).toBe(201)
  })

  test('hold for several at once', async () => {
    await setLimit({ webhooks: 4 })
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((path) => createHook(path)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409])
  })

  test('do not bind an operator, whose webhooks count', async () => {
    expect((await createHook('by-an-operator', fixture.app.admin)).status).toBe(201)
    const { body } = await tenant('GET', limitPath())
    expect(body.data).toMatchObject({ limits: { webhooks: 4 }, own: { webhooks: 4 }, used: { webhooks: 5 } })
  })

  test('count the subscriptions of all webhooks, but for that to webhook.test', async () => {
    const { body } = await tenant('GET', HOOKS)
    const [first, second] = body.data.map((row: Json) => row.document_id)
    const events = await fixture.findEventIds(['contract.create', 'contract.update', 'contract.delete', 'order.paid'])
    const refused = { status: 409, body: { limit: { name: 'subscriptions', value: 3, account } } }
    expect(await tenant('PUT', `${HOOKS}/${first}/events`, { events })).toMatchObject(refused)
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(0, 3) })).status).toBe(200)
    expect(await tenant('POST', LINKS, { webhook: second, event: events[0] })).toMatchObject(refused)
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(1, 4) })).status).toBe(200)
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(0, 2) })).status).toBe(200)
    expect((await tenant('POST', LINKS, { webhook: second, event: events[0] })).status).toBe(201)
    // Less is taken although it is still too much.
    await setLimit({ subscriptions: 1 })
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(0, 1) })).status).toBe(200)
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(1, 2) })).status).toBe(200)
    expect((await tenant('PUT', `${HOOKS}/${first}/events`, { events: events.slice(0, 2) })).status).toBe(409)
  })
})

describe('the limits of rows of a second account of the same user', () => {
  beforeAll(startAccount)

  test('hold for a webhook that moves there with its subscriptions, and a refused move changes nothing', async () => {
    const [first, second] = [account, (await fixture.createAccount()).document_id]
    const { body } = await fixture.app.admin('GET', '/api/v3/identity/role?filters=name|eq|account-developer')
    const roles = [body.data[0].document_id]
    const someone = await fixture.app.signInMember([first as never, second as never])
    for (const id of [first, second])
      await fixture.app.admin('PATCH', `/api/v3/identity/account/${id}/member`, { user: someone.userId, roles })
    const subscribed = async (owner: string, events: string[]) => {
      const url = `${fixture.receiver.origin}/moved`
      const answer = await someone.call('POST', HOOKS, { url, account: owner, events })
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
      return answer.body.data.document_id
    }
    const moved = await subscribed(first, ['contract.create', 'contract.update'])
    const there = await subscribed(second, ['contract.create', 'contract.update'])
    const move = () => someone.call('PATCH', `${HOOKS}/${moved}`, { account: second })
    expect(await move()).toMatchObject({
      status: 409,
      body: { code: 'limit_reached', limit: { name: 'subscriptions', value: 3, account: second } },
    })
    expect((await someone.call('GET', `${HOOKS}/${moved}`)).body.data.account).toBe(first)
    // One subscription less leaves room for the two that come; those to webhook.test do not count.
    await someone.call('PUT', `${HOOKS}/${there}/events`, { events: ['contract.create'] })
    expect(await move()).toMatchObject({ status: 200, body: { data: { account: second } } })
    expect((await someone.call('GET', limitPath(second))).body.data.used).toEqual({ webhooks: 2, subscriptions: 3 })
    expect((await someone.call('GET', limitPath(first))).body.data.used).toEqual({ webhooks: 0, subscriptions: 0 })
  })
})

describe('the limit of published events', () => {
  beforeAll(startAccount)

  test('refuses a request that has no room with 429, its name and the time to wait, and takes nothing of it', async () => {
    await setLimit({ published_per_minute: 5 })
    expect((await publish(3)).status).toBe(202)
    const refused = await publish(3)
    expect(refused).toMatchObject({
      status: 429,
      body: { code: 'rate_limited', limit: { name: 'published_per_minute', value: 5, account } },
    })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await publish(2)).status).toBe(202)
    expect((await publish(1)).status).toBe(429)
    fixture.app.clock.advance(60_000)
    expect((await publish(5)).status).toBe(202)
    expect((await publish(6)).body.detail).toContain('send less at once')
  })

  test('does not bind an operator, and follows a change at once', async () => {
    expect((await publish(20, fixture.app.admin)).status).toBe(202)
    fixture.app.clock.advance(60_000)
    await setLimit({ published_per_minute: 1 })
    expect((await publish(2)).status).toBe(429)
    await setLimit({ published_per_minute: null })
    expect((await publish(2)).status).toBe(202)
  })
})

describe('the limit of replays', () => {
  beforeAll(startAccount)

  test('counts tests, single replays and each row of a bulk replay', async () => {
    await setLimit({ replays_per_minute: 3 })
    const { body } = await createHook('replayed')
    const id = body.data.document_id
    const testPath = `${HOOKS}/${id}/test`
    const dispatches = []
    for (let index = 0; index < 2; index += 1) {
      dispatches.push((await tenant('POST', testPath)).body.data.dispatch_id)
      await fixture.app.settle()
    }
    const replay = (dispatch: string) =>
      tenant('POST', `/api/v3/webhook/dispatch/${dispatch}/replay`, { confirm_duplicate: true })
    const all = { filters: [`webhook|eq|${id}`], confirm_duplicate: true }
    const bulk = (more: object = {}) => tenant('POST', '/api/v3/webhook/dispatch/replay', { ...all, ...more })
    const refused = { status: 429, body: { limit: { name: 'replays_per_minute', value: 3, account } } }
    expect(await bulk()).toMatchObject(refused)
    expect((await bulk({ limit: 1 })).status).toBe(202)
    expect(await replay(dispatches[1])).toMatchObject(refused)
    expect(await tenant('POST', testPath)).toMatchObject(refused)
    fixture.app.clock.advance(60_000)
    expect((await bulk()).status).toBe(202)
    expect((await tenant('POST', testPath)).status).toBe(202)
    expect(await replay(dispatches[1])).toMatchObject(refused)
  })
})

describe('setting limits', () => {
  beforeAll(startAccount)

  test('is for operators, and reading for everybody who holds the permission in the account', async () => {
    expect(await tenant('PATCH', limitPath(), { webhooks: 9 })).toMatchObject({ status: 403 })
    const stranger = (await fixture.createAccount()).document_id
    expect((await tenant('GET', limitPath(stranger))).status).toBe(404)
    expect(
      (await fixture.app.admin('PATCH', limitPath('01990000-0000-7000-8000-000000000000'), { webhooks: 1 })).status,
    ).toBe(404)
    expect((await fixture.app.admin('PATCH', limitPath(), { webhooks: -1 })).status).toBe(422)
    expect((await fixture.app.admin('PATCH', limitPath(), {})).status).toBe(422)
  })

  test('keeps what is left out, and null is the default again', async () => {
    await setLimit({ webhooks: 7, replays_per_minute: 0 })
    const changed = await setLimit({ webhooks: null })
    expect(changed.data).toMatchObject({
      limits: { webhooks: 2, subscriptions: 3, published_per_minute: 6_000, replays_per_minute: 0 },
      own: { webhooks: null, replays_per_minute: 0 },
    })
    expect((await setLimit({ webhooks: null })).message).toContain('unchanged')
  })
})
