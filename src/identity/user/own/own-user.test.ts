import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const OWN = '/api/v3/auth/user'
const IDENTITY = '/api/v3/identity'
const PASSWORD = 'correct horse battery'

const roleId = async (name: string) =>
  (await app.admin('GET', `${IDENTITY}/role?filters=name|eq|${name}`)).body.data[0].document_id as string

const app = await openForFile(createTestApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } }))
const adminRole = await roleId('account-admin')

let count = 0
async function createUser(more: object = {}) {
  const email = `owner-${count++}@example.com`
  const id = await createUserWithPassword(app, { email, name: 'Vera Quill', ...more }, PASSWORD)
  const signIn = () => app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
  const session = async () => app.callAs((await signIn()).body.data.jwt)
  return { id, email, signIn, session, call: await session() }
}

/** An account with these administrators. */
async function createAccount(...users: { id: string }[]): Promise<string> {
  const account = (await app.admin('POST', `${IDENTITY}/account`, { name: 'Acme' })).body.data.document_id
  for (const { id } of users)
    await app.admin('POST', `${IDENTITY}/account/${account}/member`, { user: id, roles: [adminRole] })
  return account
}
const remove = ({ call, email }: { call: TestCall; email: string }) => call('DELETE', OWN, { email })
const eventsOf = async (id: string) =>
  (
    await app.database.pool.query(
      'select event, url from event_occurrence where resource_id = $1 order by document_id',
      [id],
    )
  ).rows

test('the own user is read by any session and by a key, without a permission', async () => {
  const user = await createUser()
  const { data } = (await user.call('GET', OWN)).body
  expect(data).toMatchObject({ document_id: user.id, email: user.email, has_password: true, email_change: null })
  expect(data).not.toHaveProperty('password_hash')
  expect((await app.anonymous('GET', OWN)).status).toBe(401)
})

describe('the own name', () => {
  test('is changed and removed, with the event of an update and the difference in the audit log', async () => {
    const user = await createUser()
    expect((await user.call('PATCH', OWN, { name: 'Ada 東京 👩‍🚀' })).body.data.name).toBe('Ada 東京 👩‍🚀')
    expect((await user.call('PATCH', OWN, { name: 'Ada 東京 👩‍🚀' })).body.message).toBe('User unchanged.')
    expect((await user.call('PATCH', OWN, { name: null })).body.data.name).toBeNull()
    const events = (await eventsOf(user.id)).filter(({ event }) => event === 'user.update')
    expect(events).toEqual(Array(2).fill({ event: 'user.update', url: `${IDENTITY}/user/${user.id}` }))
    const { body } = await app.admin(
      'GET',
      `/api/v3/audit/log?filters=action|eq|user.update-own&filters=user|eq|${user.id}`,
    )
    expect(body.data.at(-1)).toMatchObject({ target: user.id, outcome: 'success' })
  })

  test.each([
    ['200 characters', 'a'.repeat(200), 200],
    ['201 characters', 'a'.repeat(201), 422],
    ['nothing', '', 422],
    ['spaces', '   ', 422],
    ['a line end', 'Ada\nAdministrator', 422],
    ['an escape', 'Ada\u001b[31m', 422],
    ['an override of direction', 'Ada \u202egpj.exe', 422],
    ['an isolate of direction', 'Ada \u2067x', 422],
    ['a zero-width space', 'Ad\u200ba', 422],
    ['tags', 'Ada\u{e0041}', 422],
    ['a separator of lines', 'Ada\u2028x', 422],
    ['only a joiner', '\u200d', 422],
    ['a joiner in a word', 'می\u200cخواهم', 200],
    ['NUL', 'Ada\u0000', 400],
    ['a lone surrogate', 'Ada\ud800', 400],
    ['a number', 7, 422],
  ])('of %s', async (_name, name, status) => {
    const user = await createUser()
    const answer = await user.call('PATCH', OWN, { name })
    expect([answer.status, answer.body.errors?.[0]?.path ?? 'name']).toEqual([status, 'name'])
  })

  test.each([{}, { email: 'a@example.com' }, { name: 'Ada', roles: [] }, { name: 'Ada', is_actived: true }])(
    'is all that a user changes: %j',
    async (body) => {
      expect((await (await createUser()).call('PATCH', OWN, body)).status).toBe(422)
    },
  )

  test('is not changed by a key, whatever its permissions', async () => {
    const key = await app.admin('POST', `${IDENTITY}/api-key`, { name: 'all', permissions: ['*:*'] })
    const asKey = app.callAs(key.body.data.key)
    expect((await asKey('PATCH', OWN, { name: 'Ada' })).status).toBe(409)
    expect((await asKey('DELETE', OWN, { email: 'a@example.com' })).status).toBe(409)
  })
})

describe('the own deletion', () => {
  test('ends every access, frees the address and is a user.delete', async () => {
    const user = await createUser()
    const other = await user.session()
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await user.call('POST', `${IDENTITY}/api-key`, key)).body.data.key)
    const refresh = (await user.signIn()).body.data.refresh_token
    expect(await remove(user)).toMatchObject({ status: 200, body: { data: { deleted_at: expect.any(String) } } })
    const statuses = [user.call, other, asKey].map(async (call) => (await call('GET', '/api/v3/auth/session')).status)
    expect(await Promise.all(statuses)).toEqual([401, 401, 401])
    expect((await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token: refresh })).status).toBe(401)
    expect((await user.signIn()).status).toBe(401)
    expect((await eventsOf(user.id)).at(-1)).toEqual({ event: 'user.delete', url: null })
    expect((await app.admin('GET', `${IDENTITY}/user/${user.id}`)).status).toBe(404)
    expect((await app.admin('POST', `${IDENTITY}/user`, { email: user.email })).status).toBe(201)
  })

  test.each([
    ['another address', { email: 'somebody@example.com' }, 422],
    ['no address', {}, 422],
    ['1 MiB', { email: 'a'.repeat(1_048_576) }, 413],
    ['NUL', { email: '\u0000' }, 400],
  ])('needs the own address: %s', async (_name, body, status) => {
    const user = await createUser()
    expect((await user.call('DELETE', OWN, body)).status).toBe(status)
    expect((await user.call('GET', OWN)).status).toBe(200)
  })

  test('takes the address in any case', async () => {
    const user = await createUser()
    expect((await user.call('DELETE', OWN, { email: user.email.toUpperCase() })).status).toBe(200)
  })

  test('needs a sign-in of the last ten minutes', async () => {
    await using own = await createTestApp()
    const { call } = await own.signInMember()
    own.clock.advance(600_001)
    expect(await call('DELETE', OWN, { email: 'a@example.com' })).toMatchObject({
      status: 403,
      body: { code: 'fresh_factor_required' },
    })
  })

  test('is refused to the last administrator, with the remedy', async () => {
    const { email } = (await app.admin('GET', OWN)).body.data
    const refused = await app.admin('DELETE', OWN, { email })
    expect(refused).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('Create another one first') },
    })
  })

  test('of the last two administrators at once leaves one', async () => {
    await using own = await createTestApp()
    const { body } = await own.admin('GET', `${IDENTITY}/role?filters=name|eq|administrator`)
    const { call, userId } = await own.signInMember()
    await own.admin('PATCH', `${IDENTITY}/user/${userId}`, { roles: [body.data[0].document_id] })
    const addresses = await Promise.all([own.admin, call].map(async (send) => (await send('GET', OWN)).body.data.email))
    const answers = await Promise.all(
      [own.admin, call].map((send, at) => send('DELETE', OWN, { email: addresses[at] })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  })

  test('is refused to the only administrator of an account, until another one is', async () => {
    const [first, second] = [await createUser(), await createUser()]
    const account = await createAccount(first)
    expect(await remove(first)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('only administrator of the account Acme') },
    })
    await app.admin('POST', `${IDENTITY}/account/${account}/member`, { user: second.id, roles: [] })
    expect((await remove(first)).status).toBe(409)
    await app.admin('PATCH', `${IDENTITY}/account/${account}/member`, { user: second.id, roles: [adminRole] })
    expect((await remove(first)).status).toBe(200)
    expect((await remove(second)).status).toBe(409)
    await app.admin('DELETE', `${IDENTITY}/account/${account}`)
    expect((await remove(second)).status).toBe(200)
  })

  test('a disabled administrator of the account does not count as another one', async () => {
    const [first, second] = [await createUser(), await createUser()]
    await createAccount(first, second)
    await app.admin('POST', `${IDENTITY}/user/${second.id}/disable`)
    expect((await remove(first)).status).toBe(409)
  })

  test('of the last two administrators of an account at once leaves one', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const [first, second] = [await createUser(), await createUser()]
      await createAccount(first, second)
      const statuses = (await Promise.all([remove(first), remove(second)])).map(({ status }) => status)
      expect(statuses.toSorted()).toEqual([200, 409])
    }
  })

  test('asked for many times at once happens once', async () => {
    const user = await createUser()
    const statuses = (await Promise.all(Array.from({ length: 6 }, () => remove(user)))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect((await eventsOf(user.id)).filter(({ event }) => event === 'user.delete')).toHaveLength(1)
  })
})
