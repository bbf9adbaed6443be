import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import type { AccountId } from '../../base/id.ts'

const OIDC = { issuer: 'https://login.corp.example', client_id: 'signalbox', client_secret: 'a-secret-of-corp' }

async function makeAccount(app: TestApp): Promise<AccountId> {
  return (await app.admin('POST', '/api/v3/identity/account', { name: 'Corp' })).body.data.document_id
}

async function findRole(app: TestApp, name: string): Promise<string> {
  const list = await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)
  return list.body.data[0].document_id
}

/** A member of an account with the role `account-admin`. */
async function signInAdmin(app: TestApp, account: AccountId) {
  const member = await app.signInMember([account])
  const roles = [await findRole(app, 'account-admin')]
  const body = { user: member.userId, roles }
  expect((await app.admin('PATCH', `/api/v3/identity/account/${account}/member`, body)).status).toBe(200)
  return member
}

const pathOf = (account: string) => `/api/v3/identity/account/${account}/connection`

describe('connections of an account', () => {
  test('are created, listed, read, changed and deleted, and never show their secret', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const { call } = await signInAdmin(app, account)
    const viewer = await findRole(app, 'account-viewer')
    const body = {
      kind: 'oidc',
      name: 'Corp login',
      oidc: { ...OIDC, groups_claim: 'groups' },
      group_roles: [{ group: 'staff', role: viewer }],
    }
    const created = await call('POST', pathOf(account), body)
    expect(created.status).toBe(201)
    const id = created.body.data.document_id
    expect(created.body.data).toMatchObject({
      kind: 'oidc',
      is_enabled: true,
      is_enforced: false,
      is_jit: false,
      default_role: null,
      group_roles: [{ group: 'staff', role: viewer }],
      session_hours: 24,
      oidc: {
        issuer: OIDC.issuer,
        scopes: ['openid', 'email', 'profile'],
        redirect_path: `/api/v3/auth/login/oauth/${id}/callback`,
      },
    })
    const read = await call('GET', created.headers.location as string)
    expect(read.body.data).toEqual(created.body.data)
    const list = await call('GET', `${pathOf(account)}?count=true`)
    expect(list.body).toMatchObject({ data: [created.body.data], pagination: { total: 1 } })
    const changed = await call('PATCH', `${pathOf(account)}/${id}`, {
      is_enforced: true,
      group_roles: [],
      default_role: viewer,
      oidc: { scopes: ['email'] },
    })
    expect(changed.body.data).toMatchObject({
      is_enforced: true,
      group_roles: [],
      default_role: viewer,
      oidc: { scopes: ['openid', 'email'], groups_claim: 'groups' },
    })
    expect((await call('GET', `${pathOf(account)}/${id}`)).body.data).toEqual(changed.body.data)
    const same = await call('PATCH', `${pathOf(account)}/${id}`, { is_enforced: true, oidc: { scopes: ['email'] } })
    expect(same.body.message).toBe('Connection unchanged.')
    const everything = JSON.stringify([created.body, read.body, list.body, changed.body])
    expect(everything).not.toContain(OIDC.client_secret)
    const { rows } = await app.database.pool.query('select secret_encrypted from connection')
    expect(rows[0].secret_encrypted).toMatch(/^v1\./)
    expect((await call('DELETE', `${pathOf(account)}/${id}`)).status).toBe(200)
    expect((await call('GET', `${pathOf(account)}/${id}`)).status).toBe(404)
  })

  test('are closed to other accounts, and to members who hold less than an administrator of the account', async () => {
    await using app = await createTestApp()
    const [own, other] = [await makeAccount(app), await makeAccount(app)]
    const { call } = await signInAdmin(app, own)
    const foreign = await signInAdmin(app, other)
    const body = { kind: 'oidc', name: 'Corp login', oidc: OIDC }
    const id = (await call('POST', pathOf(own), body)).body.data.document_id
    for (const method of ['GET', 'DELETE'] as const)
      expect((await foreign.call(method, `${pathOf(own)}/${id}`)).status).toBe(404)
    expect((await foreign.call('PATCH', `${pathOf(own)}/${id}`, { name: 'Mine' })).status).toBe(404)
    // Nor by the path of the own account.
    for (const method of ['GET', 'DELETE'] as const)
      expect((await foreign.call(method, `${pathOf(other)}/${id}`)).status).toBe(404)
    expect((await foreign.call('POST', pathOf(own), body)).status).toBe(404)
    const clerk = { name: 'clerk', is_account_scoped: true, permissions: ['connection:*', 'connection-domain:*'] }
    const role = (await app.admin('POST', '/api/v3/identity/role', clerk)).body.data.document_id
    const member = await app.signInMember([own])
    await app.admin('PATCH', `/api/v3/identity/account/${own}/member`, { user: member.userId, roles: [role] })
    expect((await member.call('GET', pathOf(own))).status).toBe(200)
    for (const answer of [
      await member.call('POST', pathOf(own), body),
      await member.call('PATCH', `${pathOf(own)}/${id}`, { is_jit: true }),
      await member.call('DELETE', `${pathOf(own)}/${id}`),
    ])
      expect(answer).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
  })

  test('give no role beyond the permissions of their maker, and no global one', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const { call } = await signInAdmin(app, account)
    const publisher = await findRole(app, 'account-publisher')
    const viewer = await findRole(app, 'account-viewer')
    const administrator = await findRole(app, 'administrator')
    const body = { kind: 'oidc', name: 'x', oidc: OIDC }
    const make = (role: string) => call('POST', pathOf(account), { ...body, group_roles: [{ group: 'g', role }] })
    expect((await make(administrator)).status).toBe(422)
    expect((await make(publisher)).status).toBe(403)
    // Beside a role that may be given, and as the role of everyone who arrives.
    const given = { group_roles: [{ group: 'g', role: viewer }], default_role: publisher }
    expect((await call('POST', pathOf(account), { ...body, ...given })).status).toBe(403)
    const { document_id: id } = (await call('POST', pathOf(account), { ...body, default_role: viewer })).body.data
    const change = (role: string | null) => call('PATCH', `${pathOf(account)}/${id}`, { default_role: role })
    expect([(await change(publisher)).status, (await change(administrator)).status]).toEqual([403, 422])
    // What a stronger administrator has set is not taken by a weaker one either.
    await app.admin('PATCH', `${pathOf(account)}/${id}`, { default_role: publisher })
    expect((await change(null)).status).toBe(403)
    const unknown = '01990000-0000-7000-8000-000000000001'
    expect((await make(unknown)).status).toBe(422)
  })

  test('have a name that cannot reorder the page of the sign-in', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const make = (name: string) => app.admin('POST', pathOf(account), { kind: 'oidc', name, oidc: OIDC })
    const { document_id: id } = (await make('Acme')).body.data
    const refused = { status: 422, body: { errors: [{ path: 'name', code: 'unsafe_character' }] } }
    expect(await make('Acme\u202e')).toMatchObject(refused)
    expect(await app.admin('PATCH', `${pathOf(account)}/${id}`, { name: 'Acme\u2067' })).toMatchObject(refused)
  })

  test.each([
    ['http://login.corp.example', 'url_not_https'],
    ['https://127.0.0.1/', 'url_host_not_public'],
    ['https://169.254.169.254/', 'url_host_not_public'],
    ['https://metadata.google.internal/', 'url_host_not_public'],
    ['https://a:b@login.corp.example/', 'url_has_user_info'],
    ['https://login.corp.example/?x=1', 'url_invalid'],
    ['https://login.corp.example:25/', 'url_port_not_allowed'],
  ])('take no issuer like %s', async (issuer, code) => {
    await using app = await createTestApp({ env: { APP_ENV: 'production' } })
    const account = await makeAccount(app)
    const made = await app.admin('POST', pathOf(account), { kind: 'oidc', name: 'x', oidc: { ...OIDC, issuer } })
    expect(made).toMatchObject({ status: 422, body: { errors: [{ path: 'oidc.issuer', code }] } })
  })

  test('send no stored secret to another issuer', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const made = await app.admin('POST', pathOf(account), { kind: 'oidc', name: 'x', oidc: OIDC })
    const path = made.headers.location as string
    const moved = { issuer: 'https://evil.example' }
    expect(await app.admin('PATCH', path, { oidc: moved })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'oidc.client_secret', code: 'required' }] },
    })
    const withSecret = { ...moved, client_secret: 'another' }
    expect((await app.admin('PATCH', path, { oidc: withSecret })).status).toBe(200)
  })

  test('are ten at most, also when they are created at once', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const body = { kind: 'oidc', name: 'x', oidc: OIDC }
    const made = await Promise.all(Array.from({ length: 14 }, () => app.admin('POST', pathOf(account), body)))
    expect(made.filter(({ status }) => status === 201)).toHaveLength(10)
    expect(made.filter(({ body }) => body.code === 'limit_reached')).toHaveLength(4)
  })
})
