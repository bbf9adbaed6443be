import { describe, expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../base/id.ts'
import { COUNT_LIMIT } from './account-activity.store.ts'

const PATH = '/api/v3/webhook/dashboard/account'
const UNKNOWN = '00000000-0000-7000-8000-000000000000'
const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2026, 8, 11, 12, 20)
const NONE = { members: 0, webhooks: 0, success: 0, exhausted: 0, failed: 0 }

const makeAccount = async (name: string): Promise<AccountId> =>
  (await d.call('POST', '/api/v3/identity/account', { name })).body.data.document_id

const d = await openForFile(openDelivery())
d.t.clock.set(NOW_MS)
const own = await makeAccount('Own')
const other = await makeAccount('Other')

const ask = (...accounts: string[]) => `${PATH}?${accounts.map((id) => `account=${id}`).join('&')}`
const read = async (...accounts: string[]) => (await d.call('GET', ask(...accounts))).body.data

/** Adds sums of outcomes of a scope, some hours ago. */
const addSum = (scope: string, measure: string, count: number, hoursAgo: number) =>
  d.t.database.pool.query(
    `insert into webhook_outcome (scope, width, at, measure, count) values ($1, 'hour', date_trunc('hour', $2::timestamptz), $3, $4)`,
    [scope, new Date(NOW_MS - hoursAgo * HOUR_MS), measure, count],
  )

test('an account has its members, its webhooks and its deliveries, and none of those of another or of a deleted one', async () => {
  const [kept, gone] = [await d.t.signInMember([own]), await d.t.signInMember([own])]
  expect(kept.userId).not.toBe(gone.userId)
  await d.t.database.pool.query('update "user" set deleted_at = now() where document_id = $1', [gone.userId])
  await d.makeWebhook({ account: own })
  const removed = (await d.makeWebhook({ account: own })).id
  await d.call('DELETE', `/api/v3/webhook/webhook/${removed}`)
  await d.makeWebhook()
  await addSum(own, 'success', 5, 0)
  await addSum(own, 'success', 2, 23)
  await addSum(own, 'success', 100, 24)
  await addSum(own, 'exhausted', 3, 1)
  await addSum(own, 'failed', 4, 1)
  await addSum(own, 'retrying', 50, 1)
  await addSum(own, 'cause:dns', 50, 1)
  const ended = await makeAccount('Ended')
  await d.call('DELETE', `/api/v3/identity/account/${ended}`)
  expect(await read(other, UNKNOWN, own, ended, own)).toEqual([
    { account: other, ...NONE },
    { account: own, members: 1, webhooks: 1, success: 7, exhausted: 3, failed: 4 },
  ])
})

test(`members are counted up to ${COUNT_LIMIT}`, async () => {
  const many = await makeAccount('Many')
  const { pool } = d.t.database
  await pool.query(
    `with added as (
      insert into "user" (document_id, email, created_at, updated_at)
      select gen_random_uuid(), 'many-' || n || '@example.test', now(), now() from generate_series(1, $2::int) n
      returning document_id)
    insert into account_member (document_id, account, "user", created_at, updated_at)
    select gen_random_uuid(), $1::uuid, document_id, now(), now() from added`,
    [many, COUNT_LIMIT + 1],
  )
  expect(await read(many)).toMatchObject([{ members: COUNT_LIMIT }])
})

describe('the overview', () => {
  test('compares the deliveries that were given up in 24 hours to those of the 24 before', async () => {
    const everything = '00000000-0000-0000-0000-000000000000'
    for (const [scope, factor] of [
      [everything, 10],
      [other, 1],
    ] as const) {
      await addSum(scope, 'exhausted', factor, 0)
      await addSum(scope, 'exhausted', 2 * factor, 23)
      await addSum(scope, 'exhausted', 4 * factor, 24)
      await addSum(scope, 'exhausted', 8 * factor, 47)
      await addSum(scope, 'exhausted', 16 * factor, 48)
      await addSum(scope, 'failed', 32 * factor, 24)
    }
    const summary = '/api/v3/webhook/dashboard/summary'
    expect((await d.call('GET', summary)).body.data.exhausted).toEqual({ last_24h: 30, before_24h: 120 })
    const viewer = await join(other, 'account-viewer')
    expect((await viewer('GET', summary)).body.data.exhausted).toEqual({ last_24h: 3, before_24h: 12 })
  })
})

describe('a caller', () => {
  test('of one account learns nothing of another', async () => {
    const viewer = await join(own, 'account-viewer')
    const { data } = (await viewer('GET', ask(own, other))).body
    expect(data.map((row: { account: string }) => row.account)).toEqual([own])
    expect(data[0].members).toBeGreaterThan(0)
  })

  test('who may not list the members of an account does not learn their number', async () => {
    const developer = await join(own, 'account-developer')
    expect((await developer('GET', ask(own))).body.data).toMatchObject([{ account: own, members: null, webhooks: 1 }])
  })

  test('needs the permission webhook:dashboard-accounts', async () => {
    expect((await d.t.anonymous('GET', ask(own))).status).toBe(401)
    const refused = await (await d.t.signInMember([own])).call('GET', ask(own))
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining('webhook:dashboard-accounts')])
  })

  test.each([
    ['no account', PATH],
    ['what is no id', `${PATH}?account=billing`],
    ['51 accounts', ask(...Array(51).fill(UNKNOWN))],
  ])('who asks for %s gets a 422', async (_name, path) => {
    expect((await d.t.admin('GET', path)).status).toBe(422)
  })
})

async function join(account: AccountId, role: string) {
  const { call, userId } = await d.t.signInMember([account])
  const roles = (await d.call('GET', `/api/v3/identity/role?filters=name|eq|${role}`)).body.data
  const body = { user: userId, roles: [roles[0].document_id] }
  await d.call('PATCH', `/api/v3/identity/account/${account}/member`, body)
  return call
}
