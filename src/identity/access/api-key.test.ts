import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID, type User } from '../../../test/harness/app/identity-app.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { endUserTokens } from '../user/user.ts'

const KEYS = '/api/v3/identity/api-key'
const USERS = '/api/v3/identity/user'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
const reader = await app.callerWith('reader', ['user:find-all', 'user:find-one'])

const createKey = async (owner: User, permissions: string[], more: Record<string, unknown> = {}) => {
  const reply = await app.call('POST', KEYS, { token: owner.token, body: { name: 'a key', permissions, ...more } })
  expect(reply.status).toBe(201)
  return reply.body.data
}
const statusWith = async (token: string, path = USERS) => (await app.call('GET', path, { token })).status

describe('a new key', () => {
  test('is shown once, stored as a hash, and works as a bearer token', async () => {
    const created = await createKey(reader, ['user:find-all'])
    expect(created.key).toMatch(/^sbx_[A-Za-z0-9_-]{43}$/)
    expect(created).toMatchObject({
      user: reader.user.id,
      permissions: ['user:find-all'],
      expires_at: null,
      last_used_at: null,
    })
    expect(created.key.startsWith(created.hint.slice(0, -1))).toBe(true)
    expect(await statusWith(created.key)).toBe(200)
    const read = await app.call('GET', `${KEYS}/${created.document_id}`, { token: reader.token })
    expect(read.body.data).toEqual({
      ...created,
      key: undefined,
      last_used_at: new Date(app.clock.now()).toISOString(),
    })
    const dump = JSON.stringify(await app.db.selectFrom('api_key').selectAll().execute())
    expect(dump).not.toContain(created.key)
    expect(await app.events()).toContain(`api-key.create ${created.document_id}`)
  })

  test('is null in the answer to a repeat with the same Idempotency-Key', async () => {
    const make = () =>
      app.server.inject({
        method: 'POST',
        url: KEYS,
        headers: { authorization: `Bearer ${reader.token}`, 'idempotency-key': 'the-same' },
        payload: { name: 'once', permissions: ['user:find-all'] },
      })
    const [first, second] = [await make(), await make()]
    expect(first.json().data.key).toMatch(/^sbx_/)
    expect(second.json().data).toEqual({ ...first.json().data, key: null })
  })

  test.each([
    ['no permission', { name: 'x', permissions: [] }],
    ['no name', { permissions: ['user:find-all'] }],
    ['an unknown permission', { name: 'x', permissions: ['user:fly'] }],
    ['an end in the past', { name: 'x', permissions: ['user:find-all'], expires_at: '2020-01-01T00:00:00.000Z' }],
    ['an end that is no time', { name: 'x', permissions: ['user:find-all'], expires_at: 'tomorrow' }],
    [
      'an end in the year 10000 in UTC',
      { name: 'x', permissions: ['user:find-all'], expires_at: '9999-12-31T23:59:59-23:59' },
    ],
    ['an unknown member', { name: 'x', permissions: ['user:find-all'], user: NO_ID }],
  ])('with %s is refused with 422', async (_name, body) => {
    expect(await app.call('POST', KEYS, { token: reader.token, body })).toMatchObject({
      status: 422,
      body: { code: 'validation_failed' },
    })
  })

  test('may expire in the last millisecond of the year 9999, and every list shows it', async () => {
    const end = '9999-12-31T23:59:59.999Z'
    await createKey(reader, ['user:find-all'], { expires_at: end })
    for (const { token } of [reader, root]) {
      const { status, body } = await app.call('GET', `${KEYS}?filters=expires_at|eq|${end}`, { token })
      expect({ status, ends: body.data.map((row: { expires_at: string }) => row.expires_at) }).toEqual({
        status: 200,
        ends: [end],
      })
    }
  })

  test.each([['user:*'], ['user:delete'], ['*:*'], ['webhook:create']])(
    'cannot hold %s, which its owner does not hold',
    async (pattern) => {
      const body = { name: 'x', permissions: ['user:find-all', pattern] }
      expect(await app.call('POST', KEYS, { token: reader.token, body })).toMatchObject({
        status: 403,
        body: { code: 'permission_denied', detail: expect.stringContaining(pattern) },
      })
    },
  )

  test('may hold a pattern that its owner holds in own accounts, and reaches only these accounts', async () => {
    const member = await app.user('member-with-key')
    const account = await app.call('POST', '/api/v3/identity/account', { token: root.token, body: { name: 'Mine' } })
    const foreign = await app.call('POST', '/api/v3/identity/account', { token: root.token, body: { name: 'Theirs' } })
    const path = `/api/v3/identity/account/${account.body.data.document_id}`
    await app.call('POST', `${path}/member`, { token: root.token, body: { user: member.user.id } })
    const { key } = await createKey(member, ['account:find-one'])
    expect(await statusWith(key, path)).toBe(200)
    expect(await statusWith(key, `/api/v3/identity/account/${foreign.body.data.document_id}`)).toBe(404)
  })
})

describe('a key created with a key', () => {
  const makeWith = (token: string, more: Record<string, unknown> = {}) =>
    app.call('POST', KEYS, { token, body: { name: 'successor', permissions: ['user:find-all'], ...more } })
  const inMs = (ms: number) => new Date(app.clock.now() + ms).toISOString()

  test('expires with its creator at the latest, also without expires_at', async () => {
    const maker = await createKey(root, ['api-key:create', 'user:find-all'], { expires_at: inMs(60_000) })
    for (const more of [{}, { expires_at: null }, { expires_at: maker.expires_at }])
      expect((await makeWith(maker.key, more)).body.data.expires_at).toBe(maker.expires_at)
    const sooner = inMs(30_000)
    expect((await makeWith(maker.key, { expires_at: sooner })).body.data.expires_at).toBe(sooner)
    expect(await makeWith(maker.key, { expires_at: inMs(60_001) })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'expires_at', code: 'after_maker' }] },
    })
  })

  test('does not expire when its creator does not', async () => {
    const maker = await createKey(root, ['api-key:create', 'user:find-all'])
    expect((await makeWith(maker.key)).body.data.expires_at).toBeNull()
  })

  test('is found by its creator after that is revoked, outlives it, and is revoked with its own id', async () => {
    const permissions = ['api-key:create', 'user:find-all']
    const [leaked, other] = [await createKey(root, permissions), await createKey(root, permissions)]
    const made = [(await makeWith(leaked.key)).body.data, (await makeWith(leaked.key)).body.data]
    const kept = (await makeWith(other.key)).body.data
    expect([leaked.created_with, kept.created_with]).toEqual([null, other.document_id])
    const call = (method: 'GET' | 'DELETE', path: string) => app.call(method, path, { token: root.token })
    await call('DELETE', `${KEYS}/${leaked.document_id}`)
    const find = async () =>
      (await call('GET', `${KEYS}?filters=created_with|eq|${leaked.document_id}`)).body.data as {
        document_id: string
      }[]
    const found = (await find()).map(({ document_id: id }) => id)
    expect(found.toSorted()).toEqual(made.map(({ document_id: id }) => id).toSorted())
    expect(await statusWith(made[0].key)).toBe(200)
    for (const id of found) await call('DELETE', `${KEYS}/${id}`)
    expect(await Promise.all([...made, kept].map(({ key }) => statusWith(key)))).toEqual([401, 401, 200])
    expect(await find()).toEqual([])
    // A user without the permission finds none of another user's keys.
    const foreign = await app.call('GET', `${KEYS}?filters=created_with|eq|${other.document_id}`, {
      token: reader.token,
    })
    expect([foreign.status, foreign.body.data]).toEqual([200, []])
  })
})

describe('a user', () => {
  const make = (token: string, more: Record<string, unknown> = {}) =>
    app.call('POST', KEYS, { token, body: { name: 'one of many', permissions: ['user:find-all'], ...more } })
  const refused = { status: 409, body: { code: 'limit_reached', detail: expect.stringContaining('100') } }

  test('has at most 100 keys that are neither revoked nor expired, also under concurrent creation', async () => {
    const many = await app.callerWith('many', ['user:find-all'])
    const expires_at = new Date(app.clock.now() + 60_000).toISOString()
    const first = await make(many.token, { expires_at })
    for (let made = 1; made < 97; made += 1) expect((await make(many.token)).status).toBe(201)
    const replies = await Promise.all(Array.from({ length: 6 }, () => make(many.token)))
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409, 409, 409])
    expect(await make(many.token)).toMatchObject(refused)
    app.clock.advance(60_000)
    expect(first.body.data.expires_at).toBe(expires_at)
    const last = await make(many.token)
    expect(last.status).toBe(201)
    expect(await make(many.token)).toMatchObject(refused)
    await app.call('DELETE', `${KEYS}/${last.body.data.document_id}`, { token: many.token })
    expect((await make(many.token)).status).toBe(201)
  })

  test('who is signed out while a key is being created gets no key', async () => {
    const someone = await app.callerWith('signed out', ['user:find-all'])
    const locked = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const signingOut = inTransaction(app.db, async (tx) => {
      const caller = { patterns: ['*:*'], ceiling: null } as unknown as Caller
      await endUserTokens(tx, someone.user.id, { caller, now: new Date(app.clock.now()) })
      locked.resolve()
      await mayCommit.promise
    })
    await locked.promise
    const making = make(someone.token)
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await signingOut
    expect(await making).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
  })
})

describe('a key in use', () => {
  test('holds no more than its patterns, and no more than its owner holds now', async () => {
    const keeper = await app.callerWith('keeper', ['user:*'])
    const { key } = await createKey(keeper, ['user:find-all', 'user:find-one'])
    expect(await statusWith(key)).toBe(200)
    expect((await app.call('POST', USERS, { token: key, body: { email: 'k@example.test' } })).status).toBe(403)
    await app.call('PATCH', `${USERS}/${keeper.user.id}`, { token: root.token, body: { roles: [] } })
    expect(await statusWith(key)).toBe(403)
  })

  test('cannot be made to end now, and can be made to end a millisecond later', async () => {
    const make = async (ms: number) => {
      const body = {
        name: 'x',
        permissions: ['user:find-all'],
        expires_at: new Date(app.clock.now() + ms).toISOString(),
      }
      return (await app.call('POST', KEYS, { token: reader.token, body })).status
    }
    expect([await make(0), await make(1)]).toEqual([422, 201])
  })

  test('expires exactly at expires_at', async () => {
    const endsAtMs = app.clock.now() + 60_000
    const { key } = await createKey(reader, ['user:find-all'], { expires_at: new Date(endsAtMs).toISOString() })
    app.clock.set(endsAtMs - 1)
    expect(await statusWith(key)).toBe(200)
    app.clock.set(endsAtMs)
    expect(await statusWith(key)).toBe(401)
  })

  test('updates its last use at most once a minute', async () => {
    const created = await createKey(reader, ['user:find-all'])
    const lastUse = async () => {
      await statusWith(created.key)
      const row = await app.db
        .selectFrom('api_key')
        .select('last_used_at')
        .where('document_id', '=', created.document_id)
        .executeTakeFirstOrThrow()
      return row.last_used_at?.getTime()
    }
    const firstMs = app.clock.now()
    expect(await lastUse()).toBe(firstMs)
    app.clock.advance(59_999)
    expect(await lastUse()).toBe(firstMs)
    app.clock.advance(1)
    expect(await lastUse()).toBe(firstMs + 60_000)
  })

  test('is refused at once when it is revoked, and absent from every read', async () => {
    const created = await createKey(reader, ['user:find-all'])
    const path = `${KEYS}/${created.document_id}`
    const revoked = await app.call('DELETE', path, { token: reader.token })
    expect(revoked).toMatchObject({
      status: 200,
      body: { data: { revoked_at: new Date(app.clock.now()).toISOString() } },
    })
    expect(await statusWith(created.key)).toBe(401)
    expect((await app.call('GET', path, { token: reader.token })).status).toBe(404)
    expect((await app.call('DELETE', path, { token: reader.token })).status).toBe(404)
  })

  test('keeps the instant at which it was revoked when all keys of its owner are revoked later', async () => {
    const owner = await app.callerWith('leaving', ['user:find-all'])
    const [early, late] = [await createKey(owner, ['user:find-all']), await createKey(owner, ['user:find-all'])]
    const earlyMs = app.clock.now()
    await app.call('DELETE', `${KEYS}/${early.document_id}`, { token: owner.token })
    app.clock.advance(1_000)
    const path = `${USERS}/${owner.user.id}/disable`
    expect((await app.call('POST', path, { token: root.token })).status).toBe(200)
    const rows = await app.db.selectFrom('api_key').select(['document_id', 'revoked_at']).execute()
    const revoked = new Map(rows.map((row) => [row.document_id, row.revoked_at?.getTime()]))
    expect([revoked.get(early.document_id), revoked.get(late.document_id)]).toEqual([earlyMs, earlyMs + 1_000])
  })

  test('creates and reads no keys without the permission', async () => {
    const narrow = await createKey(root, ['user:*'])
    const body = { name: 'successor', permissions: ['user:find-all'] }
    expect((await app.call('POST', KEYS, { token: narrow.key, body })).status).toBe(403)
    expect(await statusWith(narrow.key, KEYS)).toBe(403)
    expect((await app.call('DELETE', `${KEYS}/${narrow.document_id}`, { token: narrow.key })).status).toBe(403)
    const maker = await createKey(root, ['api-key:create', 'user:find-all'])
    expect((await app.call('POST', KEYS, { token: maker.key, body })).status).toBe(201)
    const wider = { name: 'wider', permissions: ['user:create'] }
    expect((await app.call('POST', KEYS, { token: maker.key, body: wider })).status).toBe(403)
  })

  test.each([
    ['a letter less', (key: string) => key.slice(0, -1)],
    ['a letter more', (key: string) => `${key}A`],
    ['another letter', (key: string) => `${key.slice(0, 10)}${key[10] === 'A' ? 'B' : 'A'}${key.slice(11)}`],
    ['another prefix', (key: string) => key.replace('sbx_', 'sbr_')],
  ])('with %s is refused with 401', async (_name, spoil) => {
    const { key } = await createKey(reader, ['user:find-all'])
    expect(await statusWith(spoil(key))).toBe(401)
  })
})

describe('the key of another user', () => {
  test('is revoked only by a caller that holds what the key holds', async () => {
    const janitor = await app.callerWith('janitor', ['api-key:*', 'user:find-all'])
    const asJanitor = (id: string) => app.call('DELETE', `${KEYS}/${id}`, { token: janitor.token })
    const [narrow, wide] = [await createKey(root, ['user:find-all']), await createKey(root, ['user:*'])]
    expect((await asJanitor(narrow.document_id)).status).toBe(200)
    expect(await asJanitor(wide.document_id)).toMatchObject({
      status: 403,
      body: { code: 'permission_denied', detail: expect.stringContaining('user:* everywhere') },
    })
    expect(await statusWith(wide.key)).toBe(200)
  })
})

describe('a repeat of the revocation of a key of another user', () => {
  test('gives the first answer to a caller who may revoke all keys still, and a 404 to one who may not', async () => {
    const sweeper = await app.callerWith('sweeper', ['api-key:*', 'user:find-all'])
    const { document_id: id } = await createKey(root, ['user:find-all'])
    const revoke = () =>
      app.server.inject({
        method: 'DELETE',
        url: `${KEYS}/${id}`,
        headers: { authorization: `Bearer ${sweeper.token}`, 'idempotency-key': 'swept' },
      })
    const first = await revoke()
    expect(first.statusCode).toBe(200)
    const again = await revoke()
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.json()).toEqual(first.json())
    await app.call('PATCH', `${USERS}/${sweeper.user.id}`, { token: root.token, body: { roles: [] } })
    expect((await revoke()).statusCode).toBe(404)
  })
})

describe('the scope of key routes', () => {
  test('is the own keys for a caller, all keys for an administrator, and 401 without a token', async () => {
    const [mine, theirs] = [await createKey(reader, ['user:find-all']), await createKey(root, ['user:find-all'])]
    const list = async (user: User) =>
      (await app.call('GET', `${KEYS}?page_size=200`, { token: user.token })).body.data.map(
        (key: { document_id: string }) => key.document_id,
      )
    expect(await list(reader)).toContain(mine.document_id)
    expect(await list(reader)).not.toContain(theirs.document_id)
    expect(await list(root)).toEqual(expect.arrayContaining([mine.document_id, theirs.document_id]))
    expect(await statusWith(reader.token, `${KEYS}/${theirs.document_id}`)).toBe(404)
    expect((await app.call('DELETE', `${KEYS}/${theirs.document_id}`, { token: reader.token })).status).toBe(404)
    expect((await app.call('DELETE', `${KEYS}/${mine.document_id}`, { token: root.token })).status).toBe(200)
    for (const [method, path] of [
      ['GET', KEYS],
      ['POST', KEYS],
      ['GET', `${KEYS}/${NO_ID}`],
      ['DELETE', `${KEYS}/${NO_ID}`],
    ] as const)
      expect((await app.call(method, path)).status).toBe(401)
  })
})
