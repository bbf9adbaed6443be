import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { holdUser, race } from '../../../test/harness/plan/race.ts'
import type { AccountId } from '../../base/id.ts'

const KEYS = '/api/v3/identity/api-key'
const ACCOUNTS = '/api/v3/identity/account'

/** Two processes on one database. */
let app: TestApp
let other: TestApp
let developer: string
beforeAll(async () => {
  app = await createTestApp()
  other = await createTestApp({ database: app.database })
  const roles = (await app.admin('GET', '/api/v3/identity/role?filters=name|eq|account-developer')).body.data
  developer = roles[0].document_id
})
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await app[Symbol.asyncDispose]()
})

/** A developer of an account of its own, signed in. */
async function join(): Promise<{ account: AccountId; userId: string; call: TestCall; inOther: TestCall }> {
  const account = (await app.admin('POST', ACCOUNTS, { name: 'Example' })).body.data.document_id as AccountId
  const { call, userId, token } = await app.signInMember([account])
  const path = `${ACCOUNTS}/${account}/member`
  expect((await app.admin('PATCH', path, { user: userId, roles: [developer] })).status).toBe(200)
  // Both hold the caller in memory as it is now.
  const inOther = other.callAs(token)
  for (const held of [call, inOther]) expect((await held('GET', '/api/v3/auth/session')).status).toBe(200)
  return { account, userId, call, inOther }
}

const makeKey = (call: TestCall, account: AccountId) =>
  call('POST', KEYS, { name: 'bound', account, permissions: ['contract:*'] })

const leave = (account: AccountId, userId: string) =>
  app.admin('DELETE', `${ACCOUNTS}/${account}/member`, { user: userId })

describe('a key that is bound to an account, made while its owner leaves', () => {
  test('is refused when the owner has left first', async () => {
    const { account, userId, inOther } = await join()
    const requests = [() => leave(account, userId), () => makeKey(inOther, account)]
    const [left, made] = await race(app.database, holdUser(userId), requests)
    expect(left?.status).toBe(200)
    expect(made).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
  })

  test('ends with the membership when it was made first, and does not come back with it', async () => {
    const { account, userId, inOther } = await join()
    const requests = [() => makeKey(inOther, account), () => leave(account, userId)]
    const [made, left] = await race(app.database, holdUser(userId), requests)
    expect([made?.status, left?.status]).toEqual([201, 200])
    const program = other.callAs(made?.body.data.key)
    expect((await program('GET', '/api/v3/contract/contract')).status).toBe(401)
    const again = { user: userId, roles: [developer] }
    expect((await app.admin('POST', `${ACCOUNTS}/${account}/member`, again)).status).toBe(201)
    expect((await program('GET', '/api/v3/contract/contract')).status).toBe(401)
  })

  test('holds nothing that a role gave which was taken meanwhile', async () => {
    const { account, userId, inOther } = await join()
    const take = () => app.admin('PATCH', `${ACCOUNTS}/${account}/member`, { user: userId, roles: [] })
    const make = () => inOther('POST', KEYS, { name: 'bound', account, permissions: ['webhook:*'] })
    const [taken, made] = await race(app.database, holdUser(userId), [take, make])
    expect([taken?.status, made?.status]).toEqual([200, 403])
  })
})

describe('a key that is bound to an account, made while the account is deleted', () => {
  const holdAccount = (account: AccountId) => ({
    text: 'select from account where document_id = $1 for update',
    values: [account],
  })
  const remove = (account: AccountId) => app.admin('DELETE', `${ACCOUNTS}/${account}`)

  test('is refused when the account was deleted first', async () => {
    const { account, inOther } = await join()
    const requests = [() => remove(account), () => makeKey(inOther, account)]
    const [removed, made] = await race(app.database, holdAccount(account), requests)
    expect(removed?.status).toBe(200)
    expect(made).toMatchObject({ status: 422, body: { errors: [{ path: 'account' }] } })
  })

  test('ends with the account when it was made first', async () => {
    const { account, inOther } = await join()
    const requests = [() => makeKey(inOther, account), () => remove(account)]
    const [made, removed] = await race(app.database, holdAccount(account), requests)
    expect([made?.status, removed?.status]).toEqual([201, 200])
    const { rows } = await app.database.pool.query('select revoked_at from api_key where document_id = $1', [
      made?.body.data.document_id,
    ])
    expect(rows[0].revoked_at).not.toBeNull()
  })
})
