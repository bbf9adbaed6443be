import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openProvisioning, type ProvisioningFixture } from '../../../test/harness/provisioning/provisioning-service.ts'
import { type ScimServer, startScimServer } from '../../../test/harness/provisioning/scim-server.ts'
import type { UserId } from '../../base/id.ts'
import { buildScimPatch, buildScimUser, buildUserQuery, findMatch, readId } from './scim-user.ts'

/** The longest wait of a delivery. */
const LONGEST_WAIT_MS = 3_600_000
const USERS = '/api/v3/identity/user'
const TARGETS = '/api/v3/provisioning/target'

describe('a user as a SCIM resource', () => {
  test('has identity and status only, whatever else it carries', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything()), fc.option(fc.string(), { nil: null }), (more, name) => {
        const user = { ...more, roles: ['x'], groups: ['x'], entitlements: ['x'], permissions: ['x'] }
        const resource = buildScimUser({ ...user, id: 'u' as UserId, email: 'a@b.c', name, status: 'disabled' })
        expect(resource).toEqual({
          schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
          externalId: 'u',
          userName: 'a@b.c',
          ...(name !== null && { displayName: name }),
          emails: [{ value: 'a@b.c', type: 'work', primary: true }],
          active: false,
        })
      }),
    )
  })

  test('is changed attribute by attribute, and a name that is gone is removed', () => {
    const user = { id: 'u' as UserId, email: 'a@b.c', name: 'Ada', status: 'active' } as const
    const pathsOf = (name: string | null) =>
      buildScimPatch({ ...user, name }).Operations.map(({ op, path }) => `${op} ${path}`)
    const always = ['replace externalId', 'replace userName', 'replace emails', 'replace active']
    expect(pathsOf('Ada').toSorted()).toEqual([...always, 'replace displayName'].toSorted())
    expect(pathsOf(null).toSorted()).toEqual([...always, 'remove displayName'].toSorted())
  })

  test('is looked for with a filter that no value can break out of, and with no plus sign for a space', () => {
    const query = buildUserQuery('userName', 'a" or userName pr or "b+c@example.com')
    expect(query).not.toContain('+')
    expect(new URLSearchParams(query.slice(query.indexOf('?'))).get('filter')).toBe(
      'userName eq "a\\" or userName pr or \\"b+c@example.com"',
    )
  })

  test('is known by an id that is a text of some length and names no other path', () => {
    expect([readId({ id: 'x' }), readId({ id: 1 }), readId({ id: '' }), readId(null)]).toEqual([
      'x',
      undefined,
      undefined,
      undefined,
    ])
    expect([readId({ id: 'a\u0000b' }), readId({ id: '\ud83d' }), readId({ id: '👩' })]).toEqual([
      undefined,
      undefined,
      '👩',
    ])
    expect([readId({ id: '.' }), readId({ id: '..' }), readId({ id: 'x'.repeat(513) })]).toEqual(
      Array(3).fill(undefined),
    )
  })

  test('is found where exactly one of a list has the value, whatever else a service lists', () => {
    const [own, other] = [
      { id: 'x', externalId: 'u', userName: 'Ada@Example.com' },
      { id: 'y', userName: 'bob@example.com' },
    ]
    const found = { id: 'x', externalId: 'u' }
    expect(findMatch({ Resources: [own, other] }, 'externalId', 'u')).toEqual(found)
    expect(findMatch({ Resources: [other, own] }, 'userName', 'ada@example.com')).toEqual(found)
    expect(findMatch({ Resources: [other] }, 'userName', 'bob@example.com')).toEqual({ id: 'y', externalId: null })
    for (const body of [{ Resources: [other] }, { Resources: [own, own] }, { Resources: [null] }, {}, 'x', undefined])
      expect(findMatch(body, 'externalId', 'u')).toBeUndefined()
  })
})

describe('what a service answers', () => {
  test('is kept only as far as the database stores it unaltered, and never ends in an exception', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\u0000', '\ud83d', '\ude00', '/', '.', 'é') })
    fc.assert(
      fc.property(text, text, (id, externalId) => {
        const found = findMatch({ Resources: [{ id, externalId, userName: 'a@b.c' }] }, 'userName', 'a@b.c')
        for (const kept of [found?.id, found?.externalId])
          if (kept) expect(kept.isWellFormed() && !kept.includes('\u0000')).toBe(true)
        if (found) expect(decodeURIComponent(encodeURIComponent(found.id))).toBe(id)
      }),
    )
  })
})

describe('a SCIM service', () => {
  let scim: ScimServer
  let fixture: ProvisioningFixture
  let target: string
  beforeAll(async () => {
    scim = await startScimServer()
    fixture = await openProvisioning({ env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${scim.port}` } })
    const body = { url: `${scim.base}/`, protocol: 'scim', token: scim.token }
    target = (await fixture.call('POST', TARGETS, body)).document_id
  })
  beforeEach(() => {
    scim.requests.length = 0
    scim.connections.clear()
    scim.bodies.length = 0
    scim.refusals.clear()
  })
  afterAll(async () => {
    await fixture[Symbol.asyncDispose]()
    await scim[Symbol.asyncDispose]()
  })

  let addresses = 0
  /** An address that no test had, nor the first run of the same one. */
  const newAddress = () => {
    addresses += 1
    return `address-${addresses}@example.com`
  }
  /** Makes the retries of a user, each in its time, until its last delivery has ended: the number of attempts is limited. */
  const passRetries = async (user: string) => {
    while ((await last(user)).status === 'retrying') await fixture.pass(LONGEST_WAIT_MS)
  }
  const find = (id: string) => [...scim.users.values()].find((user) => user.externalId === id)
  /** The latest delivery of a user. Those of one millisecond are in no order but that of their positions. */
  const last = async (user: string) => {
    const { rows } = await fixture.t.database.pool.query<{ document_id: string }>(
      'select document_id from provisioning_delivery where target = $1 and user_id = $2 order by position desc limit 1',
      [target, user],
    )
    return fixture.call('GET', `/api/v3/provisioning/delivery/${rows[0]?.document_id}`)
  }

  test('gets the requests of many changes over the connections of those that were made at once', async () => {
    const { id } = await fixture.makeUser({ name: 'Ada' })
    await fixture.t.settle()
    for (const name of ['One', 'Two', 'Three']) {
      await fixture.call('PATCH', `${USERS}/${id}`, { name })
      await fixture.t.settle()
    }
    expect(find(id)).toMatchObject({ displayName: 'Three' })
    expect(scim.requests.length).toBeGreaterThanOrEqual(4)
    // One, but for a machine that is so slow that a connection was idle for too long.
    expect(scim.connections.size).toBeLessThanOrEqual(2)
  })

  test('gets a user created, replaced, disabled, enabled and deleted', async () => {
    const { id, email } = await fixture.makeUser({ name: 'Ada' })
    await fixture.t.settle()
    expect(find(id)).toMatchObject({ userName: email, displayName: 'Ada', active: true })
    await fixture.call('PATCH', `${USERS}/${id}`, { name: null, email: 'moved@example.com' })
    await fixture.call('POST', `${USERS}/${id}/disable`)
    await fixture.t.settle()
    expect(find(id)).toMatchObject({ userName: 'moved@example.com', active: false })
    expect(find(id)).not.toHaveProperty('displayName')
    await fixture.call('POST', `${USERS}/${id}/enable`)
    await fixture.t.settle()
    expect(find(id)).toMatchObject({ active: true })
    await fixture.call('DELETE', `${USERS}/${id}`)
    await fixture.t.settle()
    expect(find(id)).toBeUndefined()
    expect(scim.requests.map((request) => request.split(' ')[0])).toEqual(['POST', 'PATCH', 'PATCH', 'PATCH', 'DELETE'])
    expect(scim.bodies.join()).not.toMatch(/role|permission|group|entitlement/i)
  })

  test('has a user taken over whose creation was not heard of, and makes no second one', async () => {
    scim.loseNextAnswer()
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', attempts: 1 })
    await fixture.pass(60_000)
    expect(await last(id)).toMatchObject({ status: 'delivered', attempts: 2 })
    expect([...scim.users.values()].filter((user) => user.externalId === id)).toHaveLength(1)
  })

  test('has a user of the same address taken over that somebody else made, and keeps what it knows of its own', async () => {
    const roles = [{ value: 'auditor' }]
    scim.users.set('made-there', { id: 'made-there', userName: 'there@example.com', title: 'Dr', roles })
    const { id } = await fixture.makeUser({ email: 'there@example.com' })
    await fixture.t.settle()
    await fixture.call('PATCH', `${USERS}/${id}`, { name: 'Ada' })
    await fixture.t.settle()
    expect(scim.users.get('made-there')).toMatchObject({ externalId: id, displayName: 'Ada', title: 'Dr', roles })
    expect(scim.bodies.join()).not.toContain('auditor')
  })

  test.each([400, 404, 405, 501])('that answers a PATCH with %i gets the whole user in its place', async (status) => {
    scim.refusals.set('PATCH', status)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    await fixture.call('PATCH', `${USERS}/${id}`, { name: 'Put' })
    await fixture.t.settle()
    expect(find(id)).toMatchObject({ displayName: 'Put' })
    expect(scim.requests.map((request) => request.split(' ')[0])).toEqual(['POST', 'PATCH', 'PUT'])
  })

  test('that deletes no users has them inactive', async () => {
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    scim.refusals.set('DELETE', 405)
    await fixture.call('DELETE', `${USERS}/${id}`)
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ type: 'user.deprovisioned', status: 'delivered' })
    expect(find(id)).toMatchObject({ active: false })
  })

  test('gives no user to another one: who gets a freed address waits until the first is gone there', async () => {
    const email = newAddress()
    const first = await fixture.makeUser({ email })
    await fixture.t.settle()
    scim.failNext(503)
    await fixture.call('DELETE', `${USERS}/${first.id}`)
    await fixture.t.settle()
    const second = await fixture.makeUser({ email })
    await fixture.t.settle()
    expect(await last(second.id)).toMatchObject({ status: 'retrying', last_status_code: 409 })
    expect(find(first.id)).toBeDefined()
    await passRetries(first.id)
    await passRetries(second.id)
    expect(find(first.id)).toBeUndefined()
    expect(find(second.id)).toMatchObject({ userName: email, active: true })
    expect(await last(second.id)).toMatchObject({ status: 'delivered' })
  })

  test('gets an address that moves from one user to another, in whatever order the two arrive', async () => {
    const [moving, away] = [newAddress(), newAddress()]
    const [first, second] = [await fixture.makeUser({ email: moving }), await fixture.makeUser()]
    await fixture.t.settle()
    scim.failNext(503)
    await fixture.call('PATCH', `${USERS}/${first.id}`, { email: away })
    await fixture.t.settle()
    await fixture.call('PATCH', `${USERS}/${second.id}`, { email: moving })
    await fixture.t.settle()
    expect(await last(second.id)).toMatchObject({ status: 'retrying', last_status_code: 409 })
    await passRetries(first.id)
    await passRetries(second.id)
    expect([find(first.id)?.userName, find(second.id)?.userName]).toEqual([away, moving])
  })

  test('gets a user whose address was taken at first and is free when it is looked up', async () => {
    scim.failNext(409)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'delivered', attempts: 1 })
    const email = newAddress()
    scim.failNext(409)
    await fixture.call('PATCH', `${USERS}/${id}`, { email })
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(find(id)).toMatchObject({ userName: email })
  })

  test('has a user created again that it lost', async () => {
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    scim.users.delete(find(id)!.id)
    await fixture.call('PATCH', `${USERS}/${id}`, { name: 'Again' })
    await fixture.t.settle()
    expect(find(id)).toMatchObject({ displayName: 'Again' })
  })

  test('is not asked to delete what it never had, and a deletion of what is gone is done', async () => {
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    scim.users.delete(find(id)!.id)
    await fixture.call('DELETE', `${USERS}/${id}`)
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ type: 'user.deprovisioned', status: 'delivered' })
  })

  test.each([
    [503, 'retrying'],
    [400, 'failed'],
    [401, 'failed'],
  ])('that answers %i leaves a delivery %s', async (status, expected) => {
    scim.failNext(status)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: expected, last_status_code: status, attempts: 1 })
    await fixture.pass(240_000)
  })

  test('that is too busy is asked again, not before it allows it', async () => {
    scim.failNext(429)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    const row = await last(id)
    expect(row).toMatchObject({ status: 'retrying', last_status_code: 429 })
    expect(Date.parse(row.next_attempt_at) - fixture.t.clock.now()).toBeGreaterThanOrEqual(119_000)
    await fixture.pass(240_000)
    expect(await last(id)).toMatchObject({ status: 'delivered' })
  })

  test('whose success is no answer of a SCIM service has not accepted the user', async () => {
    scim.answerPageNext()
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', last_error: 'protocol', last_status_code: null })
    await fixture.pass(60_000)
    expect(find(id)).toBeDefined()
  })

  test.each([
    ['U+0000', '{"id":"a\\u0000b"}'],
    ['half a surrogate pair', '{"id":"\\ud83d"}'],
  ])('whose id holds %s has not accepted the user, and its answer is recorded', async (_, body) => {
    scim.answerNext(body)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', last_error: 'protocol', attempts: 1 })
    await fixture.pass(60_000)
    expect(await last(id)).toMatchObject({ status: 'delivered', attempts: 2 })
    expect(find(id)).toBeDefined()
  })

  test('whose look-up fails has the user tried again, and not given up', async () => {
    scim.users.set('looked-up', { id: 'looked-up', userName: 'looked-up@example.com' })
    scim.failNext(409, 503)
    const { id } = await fixture.makeUser({ email: 'looked-up@example.com' })
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', last_status_code: 503 })
    await fixture.pass(240_000)
    expect(scim.users.get('looked-up')).toMatchObject({ externalId: id })
  })

  test('is not blamed for a database that does not say whose the user is that it has', async () => {
    scim.users.set('whose', { id: 'whose', userName: 'whose@example.com' })
    const { pool } = fixture.t.database
    const { id } = await fixture.makeUser({ email: 'whose@example.com' })
    await pool.query('alter table "user" rename to "user_away"')
    await fixture.t.settle().finally(() => pool.query('alter table "user_away" rename to "user"'))
    expect(await last(id)).toMatchObject({ status: 'retrying', last_error: 'interrupted', attempts: 1 })
    await fixture.pass(LONGEST_WAIT_MS)
    expect(await last(id)).toMatchObject({ status: 'delivered' })
    expect(scim.users.get('whose')).toMatchObject({ externalId: id })
  })

  test('at another URL is another service: the ids of the former one are not used, and a reconcile fills it', async () => {
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    const { id: former } = find(id)!
    scim.users.clear()
    scim.users.set(former, { id: former, userName: 'somebody@example.com' })
    await fixture.call('PATCH', `${TARGETS}/${target}`, { url: scim.base })
    await fixture.call('POST', `${TARGETS}/${target}/reconcile`)
    await fixture.t.settle()
    expect(scim.users.get(former)).toEqual({ id: former, userName: 'somebody@example.com' })
    expect(find(id)?.id).not.toBe(former)
    const count = scim.requests.length
    await fixture.call('POST', `${TARGETS}/${target}/reconcile`)
    await fixture.t.settle()
    expect(scim.requests).toHaveLength(count)
  })

  test.each(['?tenant=1', '#users', '?'])('has a base without %s, because paths follow it', async (end) => {
    for (const [method, path] of [
      ['POST', TARGETS],
      ['PATCH', `${TARGETS}/${target}`],
    ] as const) {
      const body = { url: `${scim.base}${end}`, ...(method === 'POST' && { protocol: 'scim', token: 't' }) }
      const refused = await fixture.tryCall(method, path, body)
      expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'url'])
    }
  })

  test('needs its token, which no answer shows, and a wrong one is refused by the service', async () => {
    const refused = await fixture.tryCall('POST', TARGETS, { url: scim.base, protocol: 'scim' })
    expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'token'])
    const row = await fixture.call('PATCH', `${TARGETS}/${target}`, { token: 'wrong' })
    expect(JSON.stringify(row)).not.toContain('wrong')
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'failed', last_status_code: 401 })
    await fixture.call('PATCH', `${TARGETS}/${target}`, { token: scim.token })
    expect((await fixture.tryCall('POST', `${TARGETS}/${target}/rotate-secret`)).status).toBe(409)
  })

  test('is held to the same guard: a private address is not dialled', async () => {
    const { rows } = await fixture.t.database.pool.query(
      "update provisioning_target set url = 'http://127.0.0.1:1/scim' where document_id = $1 returning url",
      [target],
    )
    expect(rows).toHaveLength(1)
    const { id } = await fixture.makeUser()
    await fixture.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', last_error: 'blocked_address' })
    expect(scim.requests).toEqual([])
  })
})
