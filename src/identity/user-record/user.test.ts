import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID, type User } from '../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../test/harness/app/small-hash.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { findRoleByName } from '../access/role.store.ts'
import { resetPassword } from '../user/password/administrator.ts'

const USERS = '/api/v3/identity/user'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
const plain = await app.user('plain')

const asRoot = (method: string, path: string, body?: unknown) => app.call(method, path, { token: root.token, body })
const roleId = async (name: string) => (await findRoleByName(app.db, name))!.id
let count = 0
const email = () => `someone-${count++}@example.test`

async function createUser(body: Record<string, unknown> = {}) {
  const reply = await asRoot('POST', USERS, { email: email(), ...body })
  expect(reply.status).toBe(201)
  return reply.body.data
}

describe('every route on users', () => {
  const id = '{id}'
  test.each([
    ['POST', USERS],
    ['GET', USERS],
    ['GET', `${USERS}/${id}`],
    ['PATCH', `${USERS}/${id}`],
    ['DELETE', `${USERS}/${id}`],
    ['POST', `${USERS}/${id}/disable`],
    ['POST', `${USERS}/${id}/enable`],
    ['POST', `${USERS}/${id}/revoke-sessions`],
  ])('%s %s is 401 without a token, 403 for a member, and 404 for an unknown id', async (method, template) => {
    const path = template.replace(id, plain.user.id)
    expect(await app.call(method, path)).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    const refused = await app.call(method, path, { token: plain.token })
    expect(refused).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
    expect(refused.body.detail).toMatch(/user:[a-z-]+/)
    if (template.includes(id)) {
      const missing = await asRoot(method, template.replace(id, NO_ID), { nonsense: true })
      expect(missing).toMatchObject({ status: 404, body: { code: 'not_found' } })
      expect((await asRoot(method, template.replace(id, 'x'))).status).toBe(404)
    }
  })
})

describe('creating a user', () => {
  test('answers 201 with its path, the role member, no hash, and one event', async () => {
    const address = email()
    const reply = await asRoot('POST', USERS, { email: address, name: 'Ada', password: 'correct horse' })
    expect(reply.status).toBe(201)
    const { data } = reply.body
    expect(data).toEqual({
      document_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      email: address,
      email_verified_at: null,
      name: 'Ada',
      avatar_url: null,
      has_password: true,
      is_actived: true,
      last_sign_in_at: null,
      roles: [await roleId('member')],
      created_at: new Date(app.clock.now()).toISOString(),
      updated_at: new Date(app.clock.now()).toISOString(),
      deleted_at: null,
    })
    expect(reply.headers.location).toBe(`${USERS}/${data.document_id}`)
    expect((await app.events()).filter((event) => event.endsWith(data.document_id))).toEqual([
      `user.create ${data.document_id}`,
    ])
  })

  test('is recorded in the audit log, without the password', async () => {
    const user = await createUser({ password: 'a secret password' })
    const log = await asRoot('GET', `/api/v3/audit/log?filters=target|eq|${user.document_id}`)
    expect(log.body.data).toMatchObject([
      { action: 'user.create', outcome: 'success', user: root.user.id, session: root.session.sessionId },
    ])
    expect(JSON.stringify(log.body)).not.toContain('a secret password')
  })

  test('with an address in use, in any case, is a conflict', async () => {
    const user = await createUser()
    const again = await asRoot('POST', USERS, { email: user.email.toUpperCase() })
    expect(again).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test.each([
    ['no body at all', undefined],
    ['no address', {}],
    ['an address that is none', { email: 'nobody' }],
    ['a short password', { email: 'x@example.test', password: '1234567' }],
    ['a long password', { email: 'x@example.test', password: 'x'.repeat(257) }],
    ['a blank name', { email: 'x@example.test', name: '  ' }],
    ['a line end in the name', { email: 'x@example.test', name: 'a\nb' }],
    ['an unknown role', { email: 'x@example.test', roles: [NO_ID] }],
    ['a role that is no id', { email: 'x@example.test', roles: ['administrator'] }],
    ['an unknown member', { email: 'x@example.test', is_admin: true }],
  ])('with %s is a 422, and no row is written', async (_name, body) => {
    expect(await asRoot('POST', USERS, body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
    expect((await asRoot('GET', `${USERS}?filters=email|eq|x@example.test`)).body.data).toEqual([])
  })
})

test('a password is measured after its normalization, in which accents and ligatures change its length', async () => {
  const decomposed = 'vulture tra\u0301m '.repeat(19)
  expect([decomposed.length, decomposed.normalize('NFKC').length]).toEqual([266, 247])
  const made = await createUser({ password: decomposed })
  const login = { email: made.email, password: decomposed.normalize('NFC') }
  expect((await app.call('POST', '/api/v3/auth/login/local', { body: login })).status).toBe(200)
  await createUser({ password: 'ﬃﬄﬁ' })
  const longer = await asRoot('POST', USERS, { email: email(), password: 'ﬃ'.repeat(86) })
  expect(longer.body.errors).toMatchObject([{ path: 'password', code: 'too_long', params: { least: 8, most: 256 } }])
})

describe('reading users', () => {
  test('one by its id', async () => {
    const user = await createUser()
    expect((await asRoot('GET', `${USERS}/${user.document_id}`)).body.data).toEqual(user)
  })

  test('by pages, each user once, with filters and a total', async () => {
    const made = [
      await createUser({ name: 'page' }),
      await createUser({ name: 'page' }),
      await createUser({ name: 'page' }),
    ]
    const first = await asRoot('GET', `${USERS}?filters=name|eq|page&page_size=2&count=true&sort=email`)
    expect(first.body.pagination).toMatchObject({ page_size: 2, total: 3 })
    const cursor = encodeURIComponent(first.body.pagination.next_cursor)
    const second = await asRoot('GET', `${USERS}?filters=name|eq|page&page_size=2&sort=email&cursor=${cursor}`)
    const listed = [...first.body.data, ...second.body.data]
    expect(listed.map((user) => user.document_id).sort()).toEqual(made.map((user) => user.document_id).sort())
    expect(listed[0].roles).toEqual([await roleId('member')])
    expect(second.body.pagination.next_cursor).toBeNull()
  })

  test('by a field that the list does not have, such as a hash, is refused', async () => {
    expect((await asRoot('GET', `${USERS}?filters=password_hash|like|argon`)).status).toBe(422)
    expect((await asRoot('GET', `${USERS}?sort=password_hash`)).status).toBe(422)
  })
})

describe('changing a user', () => {
  test('changes only the members of the body', async () => {
    const user = await createUser({ name: 'Before' })
    app.clock.advance(1000)
    const changed = await asRoot('PATCH', `${USERS}/${user.document_id}`, { name: 'After' })
    const updated_at = new Date(app.clock.now()).toISOString()
    expect(changed.body.data).toEqual({ ...user, name: 'After', updated_at })
    expect(await app.events()).toContain(`user.update ${user.document_id}`)
  })

  test('a new address is unverified and must be free; another case of the same address is accepted', async () => {
    const [user, other] = [await createUser(), await createUser()]
    const verifiedAt = new Date(app.clock.now())
    await app.db
      .updateTable('user')
      .set({ email_verified_at: verifiedAt })
      .where('document_id', '=', user.document_id)
      .execute()
    const path = `${USERS}/${user.document_id}`
    expect(await asRoot('PATCH', path, { email: other.email })).toMatchObject({ status: 409 })
    const cased = await asRoot('PATCH', path, { email: user.email.toUpperCase() })
    expect(cased.body.data.email_verified_at).toBe(verifiedAt.toISOString())
    const moved = await asRoot('PATCH', path, { email: email() })
    expect(moved.body.data.email_verified_at).toBeNull()
  })

  test('a new password revokes the sessions of the user; another name does not', async () => {
    const someone = await app.user('someone-with-session', [], 'first password')
    const path = `${USERS}/${someone.user.id}`
    await asRoot('PATCH', path, { name: 'Other' })
    expect((await app.call('GET', '/api/v3/auth/session', { token: someone.token })).status).toBe(200)
    await asRoot('PATCH', path, { password: 'second password' })
    expect((await app.call('GET', '/api/v3/auth/session', { token: someone.token })).status).toBe(401)
  })

  test.each([
    ['nothing', {}],
    ['an unknown member', { is_actived: false }],
    ['an unknown role', { roles: [NO_ID] }],
    ['the same role twice', { roles: [NO_ID, NO_ID] }],
  ])('with %s is refused with 422', async (_name, body) => {
    expect((await asRoot('PATCH', `${USERS}/${plain.user.id}`, body)).status).toBe(422)
  })
})

const whoAmI = async (token: string) => (await app.call('GET', '/api/v3/auth/session', { token })).status

async function createKey(owner: User): Promise<string> {
  const body = { name: 'a key', permissions: ['realtime:auth'] }
  const reply = await app.call('POST', '/api/v3/identity/api-key', { token: owner.token, body })
  expect(reply.status).toBe(201)
  return reply.body.data.key
}

describe('the API keys of a user', () => {
  const ends = [
    ['disable', 'POST', '/disable', {}],
    ['revoke-sessions', 'POST', '/revoke-sessions', {}],
    ['a new password', 'PATCH', '', { password: 'another password' }],
  ] as const

  test.each(ends)('are revoked by %s', async (name, method, suffix, body) => {
    const someone = await app.user(`ends with ${name}`.replaceAll(' ', '-'))
    const key = await createKey(someone)
    expect((await asRoot(method, `${USERS}/${someone.user.id}${suffix}`, body)).status).toBe(200)
    await asRoot('POST', `${USERS}/${someone.user.id}/enable`)
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, 401])
  })

  test.each(ends)('stay valid after %s with keep_api_keys', async (name, method, suffix, body) => {
    const someone = await app.user(`outlives ${name}`.replaceAll(' ', '-'))
    const key = await createKey(someone)
    const path = `${USERS}/${someone.user.id}`
    expect((await asRoot(method, `${path}${suffix}`, { ...body, keep_api_keys: true })).status).toBe(200)
    await asRoot('POST', `${path}/enable`)
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, 200])
  })

  test('stay valid after a change of name or e-mail address', async () => {
    const someone = await app.user('moves')
    const key = await createKey(someone)
    await asRoot('PATCH', `${USERS}/${someone.user.id}`, { name: 'Moved', email: email() })
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, 200])
  })

  test('are counted by revoke-sessions beside the sessions', async () => {
    const someone = await app.user('counted')
    await createKey(someone)
    await createKey(someone)
    const reply = await asRoot('POST', `${USERS}/${someone.user.id}/revoke-sessions`)
    expect(reply.body.data).toEqual({ revoked: 1, api_keys_revoked: 2 })
  })

  test.each([
    ['PATCH', '', { keep_api_keys: true }],
    ['PATCH', '', { name: 'x', keep_api_keys: true }],
    ['PATCH', '', { password: 'another password', keep_api_keys: 'yes' }],
    ['POST', '/disable', { keep_api_keys: null }],
    ['POST', '/revoke-sessions', { keep: true }],
  ])('cannot be kept by %s %s with %j: 422', async (method, suffix, body) => {
    expect(await asRoot(method, `${USERS}/${plain.user.id}${suffix}`, body)).toMatchObject({
      status: 422,
      body: { code: 'validation_failed' },
    })
  })

  test('are revoked by signalbox admin password, except with its option to keep them', async () => {
    for (const keepApiKeys of [false, true]) {
      const someone = await app.user(`command-${keepApiKeys}`)
      const key = await createKey(someone)
      const change = { email: someone.user.email, password: 'set by the command', keepApiKeys }
      await resetPassword({ passwords: testPasswords }, app.db, { ...change, now: new Date(app.clock.now()) })
      expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, keepApiKeys ? 200 : 401])
    }
  })
})

describe('disabling, enabling and deleting', () => {
  test('disabling refuses the next request by session and by key; enabling restores neither', async () => {
    const someone = await app.user('to-be-disabled')
    const key = await createKey(someone)
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([200, 200])
    const disabled = await asRoot('POST', `${USERS}/${someone.user.id}/disable`)
    expect(disabled).toMatchObject({ status: 200, body: { data: { is_actived: false } } })
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, 401])
    const enabled = await asRoot('POST', `${USERS}/${someone.user.id}/enable`)
    expect(enabled).toMatchObject({ status: 200, body: { data: { is_actived: true } } })
    expect([await whoAmI(someone.token), await whoAmI(key)]).toEqual([401, 401])
  })

  test('a repeat changes nothing and records no event', async () => {
    const user = await createUser()
    const path = `${USERS}/${user.document_id}`
    for (const action of ['enable', 'disable', 'disable', 'enable', 'enable'])
      expect((await asRoot('POST', `${path}/${action}`)).status).toBe(200)
    const events = (await app.events()).filter((event) => event.endsWith(user.document_id))
    expect(events.map((event) => event.split(' ')[0])).toEqual(['user.create', 'user.disable', 'user.enable'])
  })

  test('revoke-sessions revokes every session and answers their number', async () => {
    const someone = await app.user('signed-in')
    const reply = await asRoot('POST', `${USERS}/${someone.user.id}/revoke-sessions`)
    expect(reply).toMatchObject({ status: 200, body: { data: { revoked: 1 } } })
    expect((await app.call('GET', '/api/v3/auth/session', { token: someone.token })).status).toBe(401)
  })

  test('a deleted user is a 404, its token is refused, and its address is free', async () => {
    const someone = await app.user('to-be-deleted')
    const path = `${USERS}/${someone.user.id}`
    const deleted = await asRoot('DELETE', path)
    expect(deleted).toMatchObject({
      status: 200,
      body: { data: { deleted_at: new Date(app.clock.now()).toISOString() } },
    })
    expect((await asRoot('GET', path)).status).toBe(404)
    expect((await asRoot('DELETE', path)).status).toBe(404)
    expect((await app.call('GET', '/api/v3/auth/session', { token: someone.token })).status).toBe(401)
    expect((await asRoot('POST', USERS, { email: someone.user.email })).status).toBe(201)
  })
})
