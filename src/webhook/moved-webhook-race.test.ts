import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp, type TestCall } from '../../test/harness/app/app.ts'
import { race } from '../../test/harness/plan/race.ts'
import type { AccountId } from '../base/id.ts'

const WEBHOOKS = '/api/v3/webhook/webhook'
const LINKS = '/api/v3/webhook/webhook-event'
const ACCOUNTS = '/api/v3/identity/account'
const LIMIT = 3

/** Two processes on one database. */
let app: TestApp
let other: TestApp
let developer: string
let types: string[]
beforeAll(async () => {
  const env = { ACCOUNT_SUBSCRIPTIONS_LIMIT: String(LIMIT) }
  app = await createTestApp({ env })
  other = await createTestApp({ database: app.database, env })
  const roles = (await app.admin('GET', '/api/v3/identity/role?filters=name|eq|account-developer')).body.data
  developer = roles[0].document_id
  const { rows } = await app.database.pool.query(
    `select document_id from event where internal like 'contract.%' order by internal`,
  )
  types = rows.map((row) => row.document_id as string)
})
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await app[Symbol.asyncDispose]()
})

/** A developer of two accounts: one with a webhook that may move, and one with as many subscriptions as its limit. */
async function join(): Promise<{ from: AccountId; to: AccountId; call: TestCall; inOther: TestCall; webhook: string }> {
  const make = async () => (await app.admin('POST', ACCOUNTS, { name: 'Example' })).body.data.document_id as AccountId
  const [from, to] = [await make(), await make()]
  const { call, userId, token } = await app.signInMember([from, to])
  for (const account of [from, to]) {
    const path = `${ACCOUNTS}/${account}/member`
    expect((await app.admin('PATCH', path, { user: userId, roles: [developer] })).status).toBe(200)
  }
  const body = { url: 'https://hooks.example.com/', account: to, events: types.slice(0, LIMIT) }
  expect((await app.admin('POST', WEBHOOKS, body)).status).toBe(201)
  const moving = await app.admin('POST', WEBHOOKS, { url: 'https://hooks.example.com/', account: from })
  return { from, to, call, inOther: other.callAs(token), webhook: moving.body.data.document_id }
}

const holdWebhook = (id: string) => ({ text: 'select from webhook where document_id = $1 for update', values: [id] })

async function countLinks(account: AccountId): Promise<number> {
  const { rows } = await app.database.pool.query('select used_subscriptions from account_use($1)', [account])
  return rows[0].used_subscriptions
}

describe('a subscription that is made while its webhook moves to an account without room', () => {
  test.each([
    ['of one event type', (call: TestCall, webhook: string) => call('POST', LINKS, { webhook, event: types[0] })],
    [
      'with an event set',
      (call: TestCall, webhook: string) => call('PUT', `${WEBHOOKS}/${webhook}/events`, { events: types.slice(0, 2) }),
    ],
  ])('is refused: %s', async (_name, subscribe) => {
    const { to, call, inOther, webhook } = await join()
    const move = () => call('PATCH', `${WEBHOOKS}/${webhook}`, { account: to })
    const requests = [move, () => subscribe(inOther, webhook)]
    const [moved, subscribed] = await race(app.database, holdWebhook(webhook), requests)
    expect(moved?.status, JSON.stringify(moved?.body)).toBe(200)
    expect(subscribed).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await countLinks(to)).toBe(LIMIT)
  })

  test('moves with the webhook only where there is room, when it was made first', async () => {
    const { from, to, call, inOther, webhook } = await join()
    const subscribe = () => inOther('POST', LINKS, { webhook, event: types[0] })
    const move = () => call('PATCH', `${WEBHOOKS}/${webhook}`, { account: to })
    const [subscribed, moved] = await race(app.database, holdWebhook(webhook), [subscribe, move])
    expect(subscribed?.status).toBe(201)
    expect(moved).toMatchObject({ status: 409, body: { code: 'limit_reached' } })
    expect([await countLinks(from), await countLinks(to)]).toEqual([1, LIMIT])
  })
})
