import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID } from '../../../test/harness/app/identity-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { checkAccountExists, openAccountFor } from './account.ts'

const ACCOUNTS = '/api/v3/identity/account'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
const plain = await app.user('plain')

const asRoot = (method: string, path: string, body?: unknown) => app.call(method, path, { token: root.token, body })

async function createAccount(name = 'An account') {
  const reply = await asRoot('POST', ACCOUNTS, { name })
  expect(reply.status).toBe(201)
  return { ...reply.body.data, path: `${ACCOUNTS}/${reply.body.data.document_id}` }
}

const eventsOf = async (id: string) => {
  const rows = await app.db
    .selectFrom('event_occurrence')
    .selectAll()
    .where('account', '=', id)
    .orderBy('document_id')
    .execute()
  return rows.map((row) => row.event)
}

test('an account has no name that reorders the texts beside it, nor one that cannot be seen', async () => {
  const { path } = await createAccount()
  for (const [name, code] of [
    ['Acme \u202e', 'unsafe_character'],
    ['\u00ad', 'blank'],
  ]) {
    const refused = { status: 422, body: { errors: [{ path: 'name', code }] } }
    expect(await asRoot('POST', ACCOUNTS, { name })).toMatchObject(refused)
    expect(await asRoot('PATCH', path, { name })).toMatchObject(refused)
  }
})

describe('every route on accounts and members', () => {
  test.each([
    ['POST', ACCOUNTS],
    ['GET', ACCOUNTS],
    ['GET', `${ACCOUNTS}/{id}`],
    ['PATCH', `${ACCOUNTS}/{id}`],
    ['DELETE', `${ACCOUNTS}/{id}`],
    ['POST', `${ACCOUNTS}/{id}/member`],
    ['GET', `${ACCOUNTS}/{id}/member`],
    ['DELETE', `${ACCOUNTS}/{id}/member`],
  ])(
    '%s %s is 401 without a token, 403 without the permission, and 404 for an unknown id',
    async (method, template) => {
      const path = template.replace('{id}', NO_ID)
      const powerless = await app.callerWith(`powerless ${method} ${template}`.replace(/[^a-zA-Z]/g, ''), [])
      await app.db.deleteFrom('user_role').where('user', '=', powerless.user.id).execute()
      expect((await app.call(method, path)).status).toBe(401)
      expect((await app.call(method, path, { token: powerless.token })).status).toBe(403)
      if (template !== path) expect((await asRoot(method, path, { nonsense: 1 })).status).toBe(404)
    },
  )
})

describe('accounts', () => {
  test('are created, read, listed, renamed and deleted, each with an event of the account', async () => {
    const { path, ...account } = await createAccount('Acme')
    expect(account).toMatchObject({
      name: 'Acme',
      created_by: root.user.id,
      updated_by: root.user.id,
      deleted_at: null,
    })
    expect((await asRoot('GET', path)).body.data).toEqual(account)
    expect((await asRoot('GET', `${ACCOUNTS}?filters=name|eq|Acme&count=true`)).body).toMatchObject({
      data: [account],
      pagination: { total: 1, next_cursor: null },
    })
    const renamed = await asRoot('PATCH', path, { name: 'Acme Ltd' })
    expect(renamed.body.data).toMatchObject({ name: 'Acme Ltd' })
    app.clock.advance(1000)
    const endedAt = new Date(app.clock.now()).toISOString()
    expect((await asRoot('DELETE', path)).body.data).toMatchObject({ deleted_at: endedAt, updated_at: endedAt })
    expect((await asRoot('GET', path)).status).toBe(404)
    expect((await asRoot('DELETE', path)).status).toBe(404)
    expect(await eventsOf(account.document_id)).toEqual(['account.create', 'account.update', 'account.delete'])
  })

  test.each([
    ['no name', {}],
    ['a blank name', { name: ' ' }],
    ['a long name', { name: 'x'.repeat(201) }],
    ['a name that is no text', { name: 7 }],
    ['an unknown member', { name: 'x', owner: NO_ID }],
  ])('with %s are refused with 422, at create and at update', async (_name, body) => {
    const { path } = await createAccount()
    for (const [method, url] of [
      ['POST', ACCOUNTS],
      ['PATCH', path],
    ] as const)
      expect(await asRoot(method, url, body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
  })

  test('are read by their members, and are a 404 for others', async () => {
    const [mine, theirs] = [await createAccount('Mine'), await createAccount('Theirs')]
    await asRoot('POST', `${mine.path}/member`, { user: plain.user.id })
    expect((await app.call('GET', mine.path, { token: plain.token })).status).toBe(200)
    const foreign = await app.call('GET', theirs.path, { token: plain.token })
    const missing = await app.call('GET', `${ACCOUNTS}/${NO_ID}`, { token: plain.token })
    expect([foreign.status, missing.status]).toEqual([404, 404])
    expect(foreign.body.detail).toBe(missing.body.detail)
    expect((await app.call('PATCH', mine.path, { token: plain.token, body: { name: 'x' } })).status).toBe(403)
    await asRoot('DELETE', `${mine.path}/member`, { user: plain.user.id })
    expect((await app.call('GET', mine.path, { token: plain.token })).status).toBe(404)
  })

  test('are a 404 for their members once deleted', async () => {
    const { path } = await createAccount()
    await asRoot('POST', `${path}/member`, { user: plain.user.id })
    expect((await app.call('GET', path, { token: plain.token })).status).toBe(200)
    await asRoot('DELETE', path)
    expect((await app.call('GET', path, { token: plain.token })).status).toBe(404)
  })

  test('are listed and changed within the own accounts by account-scoped permissions', async () => {
    const role = await asRoot('POST', '/api/v3/identity/role', {
      name: 'own accounts',
      permissions: ['account:*', 'account-member:*'],
      is_account_scoped: true,
    })
    const owner = await app.user('owner', [role.body.data.document_id])
    const [mine, theirs] = [await createAccount('Own'), await createAccount('Other')]
    await asRoot('POST', `${mine.path}/member`, { user: owner.user.id })
    const asOwner = (method: string, path: string, body?: unknown) =>
      app.call(method, path, { token: owner.token, body })
    expect((await asOwner('GET', ACCOUNTS)).body.data).toMatchObject([{ document_id: mine.document_id }])
    expect((await asOwner('PATCH', mine.path, { name: 'Renamed' })).status).toBe(200)
    await asRoot('POST', `${mine.path}/member`, { user: plain.user.id })
    for (const [method, path, body] of [
      ['PATCH', theirs.path, { name: 'Renamed' }],
      ['DELETE', theirs.path, undefined],
      ['GET', `${theirs.path}/member`, undefined],
      ['DELETE', `${theirs.path}/member`, { user: plain.user.id }],
    ] as const)
      expect((await asOwner(method, path, body)).status).toBe(404)
    expect((await asOwner('POST', ACCOUNTS, { name: 'One more' })).status).toBe(403)
    // A user is added by id with the permission everywhere only; an account invites.
    for (const { path } of [mine, theirs])
      expect((await asOwner('POST', `${path}/member`, { user: plain.user.id })).status).toBe(403)
  })
})

describe('members', () => {
  test('are added, listed and removed, each with an event of the account', async () => {
    const { path, document_id } = await createAccount()
    const added = await asRoot('POST', `${path}/member`, { user: plain.user.id })
    expect(added).toMatchObject({
      status: 201,
      body: { data: { account: document_id, user: plain.user.id, email: 'plain@example.test', name: 'plain' } },
    })
    expect((await asRoot('GET', `${path}/member`)).body.data).toEqual([added.body.data])
    const removed = await asRoot('DELETE', `${path}/member`, { user: plain.user.id })
    expect(removed).toMatchObject({ status: 200, body: { data: added.body.data } })
    expect((await asRoot('GET', `${path}/member`)).body.data).toEqual([])
    expect(await eventsOf(document_id)).toEqual(['account.create', 'account-member.create', 'account-member.delete'])
  })

  test('are added once: a repeat is a conflict, and removing a user who is not a member a 404', async () => {
    const { path } = await createAccount()
    await asRoot('POST', `${path}/member`, { user: plain.user.id })
    expect((await asRoot('POST', `${path}/member`, { user: plain.user.id })).status).toBe(409)
    expect((await asRoot('DELETE', `${path}/member`, { user: root.user.id })).status).toBe(404)
  })

  test.each([
    ['nobody', {}],
    ['an unknown user', { user: NO_ID }],
    ['a user by e-mail', { user: 'plain@example.test' }],
    ['an unknown member', { user: NO_ID, role: 'owner' }],
  ])('with %s in the body are refused with 422', async (_name, body) => {
    const { path } = await createAccount()
    expect((await asRoot('POST', `${path}/member`, body)).status).toBe(422)
  })

  test('who were deleted are not listed', async () => {
    const { path } = await createAccount()
    const leaver = await app.user('leaver')
    await asRoot('POST', `${path}/member`, { user: leaver.user.id })
    await asRoot('DELETE', `/api/v3/identity/user/${leaver.user.id}`)
    expect((await asRoot('GET', `${path}/member?count=true`)).body).toMatchObject({
      data: [],
      pagination: { total: 0 },
    })
    expect((await asRoot('POST', `${path}/member`, { user: leaver.user.id })).status).toBe(422)
  })
})

describe("a member's e-mail address", () => {
  const emailsFor = async (token: string, path: string) =>
    (await app.call('GET', `${path}/member?sort=created_at`, { token })).body.data.map(
      (member: { email: string | null }) => member.email,
    )

  test('is shown to callers who may read the user, and to the user', async () => {
    const role = await asRoot('POST', '/api/v3/identity/role', {
      name: 'sees members',
      permissions: ['account-member:*'],
      is_account_scoped: true,
    })
    const { path } = await createAccount()
    const [boss, other] = [await app.user('boss', [role.body.data.document_id]), await app.user('other-member')]
    await asRoot('POST', `${path}/member`, { user: boss.user.id })
    app.clock.advance(1)
    await asRoot('POST', `${path}/member`, { user: other.user.id })
    expect(await emailsFor(root.token, path)).toEqual([boss.user.email, other.user.email])
    expect(await emailsFor(boss.token, path)).toEqual([boss.user.email, null])
  })

  test('is not shown by adding or removing a user by id', async () => {
    const role = await asRoot('POST', '/api/v3/identity/role', {
      name: 'adds members',
      permissions: ['account-member:*'],
    })
    const { path } = await createAccount()
    const holdings = ['realtime:auth', 'account:find-one', 'contract:*']
    const [boss, stranger] = [await app.callerWith('adder', holdings), await app.user('stranger')]
    await asRoot('PATCH', `/api/v3/identity/user/${boss.user.id}`, {
      roles: [
        ...(await asRoot('GET', `/api/v3/identity/user/${boss.user.id}`)).body.data.roles,
        role.body.data.document_id,
      ],
    })
    for (const method of ['POST', 'DELETE']) {
      const reply = await app.call(method, `${path}/member`, { token: boss.token, body: { user: stranger.user.id } })
      expect(reply.body.data).toMatchObject({ user: stranger.user.id, email: null })
      expect(JSON.stringify(reply.body)).not.toContain(stranger.user.email)
    }
  })

  test('is not shown to a narrowed key whose owner may read the user', async () => {
    const { path } = await createAccount()
    await asRoot('POST', `${path}/member`, { user: plain.user.id })
    const body = { name: 'narrow', permissions: ['account-member:find-all'] }
    const { key } = (await asRoot('POST', '/api/v3/identity/api-key', body)).body.data
    expect(await emailsFor(key, path)).toEqual([null])
  })
})

describe('for other features', () => {
  test('checkAccountExists refuses a deleted account', async () => {
    const { path, document_id } = await createAccount()
    expect(await checkAccountExists(app.db, document_id)).toBe(document_id)
    await asRoot('DELETE', path)
    await expect(checkAccountExists(app.db, document_id)).rejects.toMatchObject({ code: 'validation_failed' })
    await expect(checkAccountExists(app.db, NO_ID)).rejects.toMatchObject({ errors: [{ path: 'account' }] })
  })

  test('openAccountFor adds the user as first member', async () => {
    const user = await app.user('founder')
    const now = new Date(app.clock.now())
    const account = await openAccountFor({ ids: app.ids }, app.db, { name: 'Founded', userId: user.user.id, now })
    const read = await app.call('GET', `${ACCOUNTS}/${account.id}`, { token: user.token })
    expect(read.body.data).toMatchObject({ name: 'Founded', created_by: user.user.id })
  })
})
