import { describe, expect, test } from 'vitest'
import { type Json, startContractFixture } from '../../../test/contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const KEYS = '/api/v3/identity/api-key'
const CONTRACTS = '/api/v3/contract/contract'
const HOOKS = '/api/v3/webhook/webhook'

const make = (call: TestCall, body: object): Promise<TestAnswer> => call('POST', KEYS, { name: 'bound', ...body })
const makeCall = async (call: TestCall, body: object): Promise<TestCall> => {
  const made = await make(call, body)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  return fixture.app.callAs(made.body.data.key)
}
/** Of the administrator itself: the calls of the fixture are by a key, which has no session. */
const administrator = () => fixture.app.callAs(fixture.app.adminToken)

/** A user who is a developer in these accounts. */
const addDeveloper = (accounts: readonly string[]) => fixture.signInWithRoles(accounts, ['account-developer'])

const fixture = await openForFile(startContractFixture())
const mine: string = (await fixture.createAccount()).document_id
const other: string = (await fixture.createAccount()).document_id
const member: { call: TestCall; userId: string } = await addDeveloper([mine, other])

describe('a key that is bound to an account', () => {
  test('says so in the answer and in the list, which can be filtered by it', async () => {
    const made = await make(member.call, { permissions: ['contract:*'], account: mine })
    expect(made.body.data.account).toBe(mine)
    await make(member.call, { permissions: ['contract:*'] })
    const listed = await member.call('GET', `${KEYS}?filters=account|eq|${mine}`)
    expect(listed.body.data.map((key: Json) => key.document_id)).toEqual([made.body.data.document_id])
    expect((await member.call('GET', `${KEYS}/${made.body.data.document_id}`)).body.data.account).toBe(mine)
  })

  test('reaches no other account of its owner', async () => {
    const call = await makeCall(member.call, { permissions: ['contract:*', 'webhook:*'], account: mine })
    const [inside, outside] = [await fixture.makeChange(mine), await fixture.makeChange(other)]
    expect((await call('GET', `${CONTRACTS}/${inside}`)).status).toBe(200)
    expect((await call('GET', `${CONTRACTS}/${outside}`)).status).toBe(404)
    const listed = (await call('GET', `${CONTRACTS}?count=true`)).body
    expect(new Set(listed.data.map((row: Json) => row.account))).toEqual(new Set([mine]))
    const refused = await call('POST', CONTRACTS, { account: other, name: 'Elsewhere' })
    expect(refused).toMatchObject({
      status: 403,
      body: { missing: { what: 'account', permission: 'contract:create', account: other } },
    })
  })

  test('of an administrator reaches that account only, and nothing that concerns all of them or a user', async () => {
    const call = await makeCall(administrator(), { permissions: ['*:*'], account: mine })
    const outside = await fixture.createWebhook({ account: other })
    const everywhere = await fixture.createWebhook({ is_global: true })
    expect((await call('POST', HOOKS, { url: `${fixture.receiver.origin}/bound`, account: mine })).status).toBe(201)
    for (const { id } of [outside, everywhere]) expect((await call('GET', `${HOOKS}/${id}`)).status).toBe(404)
    for (const path of ['/api/v3/identity/user', '/api/v3/audit/log', KEYS, '/api/v3/auth/session'])
      expect(await call('GET', path)).toMatchObject({ status: 403, body: { missing: { what: 'scope' } } })
    expect(await make(call, { permissions: ['contract:*'] })).toMatchObject({ status: 403 })
    expect(await call('POST', '/api/v3/identity/role', { name: 'r', permissions: ['contract:*'] })).toMatchObject({
      status: 403,
    })
  })

  test('cannot be made for an account in which the caller holds less, whether it exists or not', async () => {
    const third = (await fixture.createAccount()).document_id
    const refusals = [third, '01990000-0000-7000-8000-000000000000'].map((account) =>
      make(member.call, { permissions: ['webhook:create'], account }),
    )
    for (const refused of await Promise.all(refusals)) {
      expect(refused.status).toBe(403)
      expect(refused.body.missing).toMatchObject({ what: 'account', permission: 'webhook:create' })
    }
    const more = await make(member.call, { permissions: ['account:update'], account: mine })
    expect(more).toMatchObject({ status: 403, body: { missing: { what: 'permission' } } })
    const unknown = await make(administrator(), {
      permissions: ['contract:*'],
      account: '01990000-0000-7000-8000-000000000001',
    })
    expect(unknown).toMatchObject({ status: 422, body: { errors: [{ path: 'account', code: 'unknown_account' }] } })
  })

  test('takes no permission that has an effect for all accounts only', async () => {
    const refused = await make(administrator(), { permissions: ['contract:*', 'user:create'], account: mine })
    expect(refused).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'permissions.1', code: 'no_effect_in_scope' }] },
    })
  })

  test('holds less with the next request when its owner holds less', async () => {
    const someone = await addDeveloper([mine])
    const call = await makeCall(someone.call, { permissions: ['webhook:*'], account: mine })
    expect((await call('GET', HOOKS)).status).toBe(200)
    const roles = [await fixture.findRoleId('account-viewer')]
    await fixture.app.admin('PATCH', `/api/v3/identity/account/${mine}/member`, { user: someone.userId, roles })
    expect((await call('GET', HOOKS)).status).toBe(200)
    const made = await call('POST', HOOKS, { url: `${fixture.receiver.origin}/late`, account: mine })
    expect(made).toMatchObject({ status: 403, body: { missing: { what: 'permission', permission: 'webhook:create' } } })
  })

  test('ends when its owner leaves the account, and stays ended when the owner comes back', async () => {
    const someone = await addDeveloper([mine, other])
    const call = await makeCall(someone.call, { permissions: ['contract:*'], account: mine })
    const elsewhere = await makeCall(someone.call, { permissions: ['contract:*'], account: other })
    const unbound = await makeCall(someone.call, { permissions: ['contract:*'] })
    expect((await call('GET', CONTRACTS)).status).toBe(200)
    const path = `/api/v3/identity/account/${mine}/member`
    await fixture.app.admin('DELETE', path, { user: someone.userId })
    await fixture.app.admin('POST', path, { user: someone.userId })
    expect((await call('GET', CONTRACTS)).status).toBe(401)
    for (const kept of [elsewhere, unbound]) expect((await kept('GET', CONTRACTS)).status).toBe(200)
  })

  test('ends with the account, also that of an administrator who is no member', async () => {
    const account = (await fixture.createAccount()).document_id
    const call = await makeCall(administrator(), { permissions: ['*:*'], account })
    expect((await call('GET', `/api/v3/identity/account/${account}`)).status).toBe(200)
    await fixture.app.admin('DELETE', `/api/v3/identity/account/${account}`)
    expect((await call('GET', `/api/v3/identity/account/${account}`)).status).toBe(401)
    const { rows } = await fixture.app.database.pool.query(
      'select from api_key where account = $1 and revoked_at is null',
      [account],
    )
    expect(rows).toEqual([])
  })
})
