import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { ROUTE_TREE } from '../../app/feature/route-tree.ts'
import type { AccountId } from '../../base/id.ts'
import { permissionOf, type RouteDeclaration } from '../../http/route/route.ts'
import { matchesPattern } from '../../http/shape/caller.ts'

const ACCOUNTS = '/api/v3/identity/account'
const CONTRACTS = '/api/v3/contract/contract'

const app = await openForFile(createTestApp())
/** Another process on the same database. */
const other = await openForFile(createTestApp({ database: app.database, clock: app.clock }))

const createAccount = async (name: string): Promise<AccountId> =>
  (await app.admin('POST', ACCOUNTS, { name })).body.data.document_id
const roleOf = async (name: string): Promise<string> =>
  (await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].document_id
const memberPath = (account: string) => `${ACCOUNTS}/${account}/member`
const setRoles = async (account: string, user: string, roles: string[], by: TestCall = app.admin) =>
  by('PATCH', memberPath(account), { user, roles: await Promise.all(roles.map(roleOf)) })
/** A user with one role in each account. */
async function createMember(roles: Record<AccountId, string>) {
  const user = await app.signInMember(Object.keys(roles) as AccountId[])
  for (const [account, role] of Object.entries(roles))
    expect((await setRoles(account, user.userId, [role])).status).toBe(200)
  return user
}

describe('the roles of a membership', () => {
  test('hold in its account only: administrator in one, reader in another', async () => {
    const [a, b] = [await createAccount('A'), await createAccount('B')]
    const { call } = await createMember({ [a]: 'account-admin', [b]: 'account-viewer' })
    expect((await call('PATCH', `${ACCOUNTS}/${a}`, { name: 'A2' })).status).toBe(200)
    // The permission opens the route, and the row is outside of what it reaches.
    expect((await call('PATCH', `${ACCOUNTS}/${b}`, { name: 'B2' })).status).toBe(404)
    expect((await call('GET', `${ACCOUNTS}/${b}`)).status).toBe(200)
    const listed = await call('GET', `${ACCOUNTS}?sort=name`)
    expect(listed.body.data.map((row: { document_id: string }) => row.document_id)).toEqual([a, b])
    expect((await call('DELETE', memberPath(b), { user: app.adminId })).status).toBe(404)
  })

  test('are given with the membership, shown in the list of members, and end with it', async () => {
    const a = await createAccount('A')
    const { userId, call } = await app.signInMember()
    const roles = [await roleOf('account-viewer')]
    const added = await app.admin('POST', memberPath(a), { user: userId, roles })
    expect(added).toMatchObject({ status: 201, body: { data: { user: userId, roles } } })
    expect((await app.admin('GET', memberPath(a))).body.data).toEqual([added.body.data])
    expect((await call('GET', memberPath(a))).status).toBe(200)
    expect((await call('GET', '/api/v3/auth/session')).body.data.membership_permissions).toMatchObject([
      { account: a, permissions: expect.arrayContaining(['webhook:find-all']) },
    ])
    expect((await app.admin('DELETE', memberPath(a), { user: userId })).body.data.roles).toEqual(roles)
    expect((await call('GET', memberPath(a))).status).toBe(403)
    await app.admin('POST', memberPath(a), { user: userId })
    expect((await call('GET', memberPath(a))).status).toBe(403)
  })

  test('take effect with the next request in every process, when they are given, taken and changed', async () => {
    const a = await createAccount('A')
    const { userId, token } = await app.signInMember([a])
    const statuses = async () =>
      Promise.all(
        [app, other].map(async (item) => (await item.callAs(token)('PATCH', `${ACCOUNTS}/${a}`, { name: 'N' })).status),
      )
    expect(await statuses()).toEqual([403, 403])
    await setRoles(a, userId, ['account-admin'])
    expect(await statuses()).toEqual([200, 200])
    await setRoles(a, userId, ['account-viewer'])
    expect(await statuses()).toEqual([403, 403])
  })

  test('are the full list: the same list changes nothing and records no event', async () => {
    const a = await createAccount('A')
    const { userId } = await createMember({ [a]: 'account-viewer' })
    const again = await setRoles(a, userId, ['account-viewer'])
    expect(again.body.message).toBe('Member unchanged.')
    const more = await setRoles(a, userId, ['account-viewer', 'account-developer'])
    expect(more.body).toMatchObject({ message: 'Member updated.', data: { roles: { length: 2 } } })
    expect((await setRoles(a, userId, [])).body.data.roles).toEqual([])
    const { rowCount } = await app.database.pool.query(
      `select from event_occurrence where event = 'account-member.update' and account = $1`,
      [a],
    )
    expect(rowCount).toBe(3)
  })

  test('are account-scoped roles that exist: others are refused at their place', async () => {
    const a = await createAccount('A')
    const { userId } = await app.signInMember([a])
    const patch = (roles: string[]) => app.admin('PATCH', memberPath(a), { user: userId, roles })
    const viewer = await roleOf('account-viewer')
    expect(await patch([viewer, await roleOf('administrator')])).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'roles.1', code: 'not_account_scoped' }] },
    })
    expect(await patch([await roleOf('administrator'), viewer])).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'roles.0', code: 'not_account_scoped' }] },
    })
    expect(await patch([a])).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'roles.0', code: 'unknown_role' }] },
    })
    expect((await patch([viewer, viewer])).status).toBe(422)
    expect((await app.admin('PATCH', memberPath(a), { user: app.adminId, roles: [] })).status).toBe(404)
  })

  test('of a role that became global hold nothing', async () => {
    const a = await createAccount('A')
    const body = { name: 'renamers', permissions: ['account:update'], is_account_scoped: true }
    const role = (await app.admin('POST', '/api/v3/identity/role', body)).body.data.document_id
    const { userId, call } = await app.signInMember([a])
    await app.admin('PATCH', memberPath(a), { user: userId, roles: [role] })
    expect((await call('PATCH', `${ACCOUNTS}/${a}`, { name: 'N' })).status).toBe(200)
    await app.admin('PATCH', `/api/v3/identity/role/${role}`, { is_account_scoped: false })
    expect((await call('PATCH', `${ACCOUNTS}/${a}`, { name: 'N' })).status).toBe(403)
  })
})

describe('the delegation of roles of a membership', () => {
  test('gives and takes no more than the caller holds in that account', async () => {
    const [a, b] = [await createAccount('A'), await createAccount('B')]
    const boss = await createMember({ [a]: 'account-admin', [b]: 'account-admin' })
    const someone = await createMember({ [a]: 'account-viewer', [b]: 'account-viewer' })
    expect((await setRoles(a, someone.userId, ['account-developer'], boss.call)).status).toBe(200)
    await setRoles(b, boss.userId, ['account-viewer'])
    expect((await setRoles(b, someone.userId, ['account-developer'], boss.call)).status).toBe(404)

    const keeper = { name: 'keepers', permissions: ['account-member:*'], is_account_scoped: true }
    await app.admin('POST', '/api/v3/identity/role', keeper)
    const clerk = await createMember({ [a]: 'keepers' })
    const refused = { status: 403, body: { code: 'permission_denied' } }
    expect(await setRoles(a, clerk.userId, ['keepers', 'account-admin'], clerk.call)).toMatchObject(refused)
    expect(await setRoles(a, boss.userId, [], clerk.call)).toMatchObject(refused)
    expect(await clerk.call('DELETE', memberPath(a), { user: boss.userId })).toMatchObject(refused)
    expect((await setRoles(a, clerk.userId, [], clerk.call)).status).toBe(200)
  })

  test('holds for an API key of a member, which reaches no more than the key holds', async () => {
    const a = await createAccount('A')
    const boss = await createMember({ [a]: 'account-admin' })
    const someone = await createMember({ [a]: 'account-viewer' })
    const keyOf = async (permissions: string[]) => {
      const { body } = await boss.call('POST', '/api/v3/identity/api-key', { name: 'key', permissions })
      return app.callAs(body.data.key)
    }
    const narrow = await keyOf(['account-member:*'])
    expect((await setRoles(a, someone.userId, [], narrow)).status).toBe(403)
    const patterns = ['account:*', 'account-member:*', 'contract:*', 'webhook:*', 'connection:*', 'connection-domain:*']
    const wide = await keyOf([
      ...patterns,
      'account-limit:find-one',
      'replay-job:*',
      'webhook-event:*',
      'webhook-dispatch:*',
      'event:find-all',
      'event:find-one',
      'event-occurrence:*',
    ])
    expect((await setRoles(a, someone.userId, [], wide)).status).toBe(200)
    const { body } = await boss.call('POST', '/api/v3/identity/api-key', { name: 'key', permissions: ['user:create'] })
    expect(body.code).toBe('permission_denied')
  })

  test('protects a member from everyone who holds less: its password is changed by nobody below it', async () => {
    const a = await createAccount('A')
    const boss = await createMember({ [a]: 'account-admin' })
    const body = { name: 'helpdesk', permissions: ['user:*', 'contract:*', 'account:find-one'] }
    const role = (await app.admin('POST', '/api/v3/identity/role', body)).body.data.document_id
    const clerk = await app.signInMember()
    await app.admin('PATCH', `/api/v3/identity/user/${clerk.userId}`, { roles: [role] })
    const change = await clerk.call('PATCH', `/api/v3/identity/user/${boss.userId}`, { name: 'mine' })
    expect(change).toMatchObject({ status: 403, body: { detail: expect.stringContaining(a) } })
  })
})

describe('the built-in account roles', () => {
  const routes: readonly RouteDeclaration[] = ROUTE_TREE
  const patternsOf = async (name: string): Promise<string[]> =>
    (await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].permissions

  test('hold what the contract says, are given to nobody and cannot be changed', async () => {
    const developer = [
      'account-limit:find-one',
      'contract:*',
      'event-occurrence:*',
      'event:find-all',
      'event:find-one',
      'replay-job:*',
      'webhook-dispatch:*',
      'webhook-event:*',
      'webhook:*',
    ]
    expect(await patternsOf('account-developer')).toEqual(developer)
    expect(await patternsOf('account-admin')).toEqual(
      [...developer, 'account:*', 'account-member:*', 'connection:*', 'connection-domain:*'].sort(),
    )
    expect(await patternsOf('account-publisher')).toEqual(['event:find-all', 'event:find-one', 'event:publish'])
    const { rowCount } = await app.database.pool.query(
      `select from user_role ur join role r on r.document_id = ur.role where r.name like 'account-%'`,
    )
    expect(rowCount).toBe(0)
    const role = await roleOf('account-viewer')
    expect((await app.admin('DELETE', `/api/v3/identity/role/${role}`)).status).toBe(409)
  })

  test('a viewer holds the reads of what an administrator of the account reaches, and nothing else', async () => {
    const admin = await patternsOf('account-admin')
    const reads = routes.filter(
      (route) =>
        route.method === 'GET' &&
        route.ownAccounts &&
        admin.some((pattern) => matchesPattern(pattern, permissionOf(route))) &&
        permissionOf(route) !== 'account-member:invite',
    )
    const held = await patternsOf('account-viewer')
    expect(held).toEqual(expect.arrayContaining([...new Set(reads.map(permissionOf))]))
    const writes = routes.filter((route) => route.method !== 'GET').map(permissionOf)
    expect(held.filter((pattern) => writes.includes(pattern))).toEqual([])
  })

  test('a viewer reads contracts of its account and changes none', async () => {
    const a = await createAccount('A')
    const { userId, call } = await app.signInMember([a])
    const { document_id: id } = (await app.admin('POST', CONTRACTS, { account: a, name: 'Lease' })).body.data
    // The role `member` would let it change contracts of all its accounts.
    await app.admin('PATCH', `/api/v3/identity/user/${userId}`, { roles: [] })
    expect((await call('GET', `${CONTRACTS}/${id}`)).status).toBe(403)
    await setRoles(a, userId, ['account-viewer'])
    expect((await call('GET', `${CONTRACTS}/${id}`)).status).toBe(200)
    expect((await call('PATCH', `${CONTRACTS}/${id}`, { name: 'Mine' })).status).toBe(403)
  })
})
