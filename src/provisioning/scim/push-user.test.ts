import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openProvisioning, type ProvisioningWorld } from '../../../test/harness/provisioning-world.ts'
import { type ScimServer, startScimServer } from '../../../test/harness/scim-server.ts'
import type { UserId } from '../../id.ts'
import { buildScimUser, buildUserQuery, readId, readOnlyId } from './scim-user.ts'

const USERS = '/api/v3/identity/user'
const TARGETS = '/api/v3/provisioning/target'

describe('a user as a SCIM resource', () => {
  it('has identity and status only, whatever else it carries', () => {
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

  it('is looked for with a filter that no value can break out of', () => {
    const query = buildUserQuery('userName', 'a" or userName pr or "b@example.com')
    expect(new URLSearchParams(query.slice(query.indexOf('?'))).get('filter')).toBe(
      'userName eq "a\\" or userName pr or \\"b@example.com"',
    )
  })

  it('is known by an id that is a text of some length, and by that of the only match', () => {
    expect([readId({ id: 'x' }), readId({ id: 1 }), readId({ id: '' }), readId(null)]).toEqual([
      'x',
      undefined,
      undefined,
      undefined,
    ])
    expect(readId({ id: 'x'.repeat(513) })).toBeUndefined()
    expect(readOnlyId({ Resources: [{ id: 'x' }] })).toBe('x')
    expect([readOnlyId({ Resources: [{ id: 'x' }, { id: 'y' }] }), readOnlyId({}), readOnlyId('x')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})

describe('a SCIM service', () => {
  let scim: ScimServer
  let world: ProvisioningWorld
  let target: string
  beforeAll(async () => {
    scim = await startScimServer()
    world = await openProvisioning({ env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${scim.port}` } })
    const body = { url: `${scim.base}/`, protocol: 'scim', token: scim.token }
    target = (await world.call('POST', TARGETS, body)).document_id
  })
  beforeEach(() => {
    scim.requests.length = 0
    scim.bodies.length = 0
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await scim[Symbol.asyncDispose]()
  })

  const find = (id: string) => [...scim.users.values()].find((one) => one.externalId === id)
  const last = async (user: string) => {
    const path = `/api/v3/provisioning/delivery?filters=target|eq|${target}&filters=user|eq|${user}&sort=-created_at`
    return (await world.call('GET', path))[0]
  }

  it('gets a user created, replaced, disabled, enabled and deleted', async () => {
    const { id, email } = await world.makeUser({ name: 'Ada' })
    await world.t.settle()
    expect(find(id)).toMatchObject({ userName: email, displayName: 'Ada', active: true })
    await world.call('PATCH', `${USERS}/${id}`, { name: null, email: 'moved@example.com' })
    await world.call('POST', `${USERS}/${id}/disable`)
    await world.t.settle()
    expect(find(id)).toMatchObject({ userName: 'moved@example.com', active: false })
    expect(find(id)).not.toHaveProperty('displayName')
    await world.call('POST', `${USERS}/${id}/enable`)
    await world.t.settle()
    expect(find(id)).toMatchObject({ active: true })
    await world.call('DELETE', `${USERS}/${id}`)
    await world.t.settle()
    expect(find(id)).toBeUndefined()
    expect(scim.requests.map((one) => one.split(' ')[0])).toEqual(['POST', 'PUT', 'PUT', 'PUT', 'DELETE'])
    expect(scim.bodies.join()).not.toMatch(/role|permission|group|entitlement/i)
  })

  it('has a user taken over whose creation was not heard of, and makes no second one', async () => {
    scim.loseNextAnswer()
    const { id } = await world.makeUser()
    await world.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', attempts: 1 })
    await world.pass(60_000)
    expect(await last(id)).toMatchObject({ status: 'delivered', attempts: 2 })
    expect([...scim.users.values()].filter((one) => one.externalId === id)).toHaveLength(1)
  })

  it('has a user of the same address taken over that somebody else made', async () => {
    scim.users.set('made-there', { id: 'made-there', userName: 'there@example.com' })
    const { id } = await world.makeUser({ email: 'there@example.com' })
    await world.t.settle()
    expect(scim.users.get('made-there')).toMatchObject({ externalId: id })
  })

  it('has a user created again that it lost', async () => {
    const { id } = await world.makeUser()
    await world.t.settle()
    scim.users.delete(find(id)!.id)
    await world.call('PATCH', `${USERS}/${id}`, { name: 'Again' })
    await world.t.settle()
    expect(find(id)).toMatchObject({ displayName: 'Again' })
  })

  it('is not asked to delete what it never had, and a deletion of what is gone is done', async () => {
    const { id } = await world.makeUser()
    await world.t.settle()
    scim.users.delete(find(id)!.id)
    await world.call('DELETE', `${USERS}/${id}`)
    await world.t.settle()
    expect(await last(id)).toMatchObject({ type: 'user.deprovisioned', status: 'delivered' })
  })

  it.each([
    [503, 'retrying'],
    [400, 'failed'],
    [401, 'failed'],
  ])('that answers %i leaves a delivery %s', async (status, expected) => {
    scim.failNext(status)
    const { id } = await world.makeUser()
    await world.t.settle()
    expect(await last(id)).toMatchObject({ status: expected, last_status_code: status, attempts: 1 })
    await world.pass(60_000)
  })

  it('needs its token, which no answer shows, and a wrong one is refused by the service', async () => {
    const refused = await world.tryCall('POST', TARGETS, { url: scim.base, protocol: 'scim' })
    expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'token'])
    const row = await world.call('PATCH', `${TARGETS}/${target}`, { token: 'wrong' })
    expect(JSON.stringify(row)).not.toContain('wrong')
    const { id } = await world.makeUser()
    await world.t.settle()
    expect(await last(id)).toMatchObject({ status: 'failed', last_status_code: 401 })
    await world.call('PATCH', `${TARGETS}/${target}`, { token: scim.token })
    expect((await world.tryCall('POST', `${TARGETS}/${target}/rotate-secret`)).status).toBe(409)
  })

  it('is held to the same guard: a private address is not dialled', async () => {
    const { rows } = await world.t.database.pool.query(
      "update provisioning_target set url = 'http://127.0.0.1:1/scim' where document_id = $1 returning url",
      [target],
    )
    expect(rows).toHaveLength(1)
    const { id } = await world.makeUser()
    await world.t.settle()
    expect(await last(id)).toMatchObject({ status: 'retrying', last_error: 'blocked_address' })
    expect(scim.requests).toEqual([])
  })
})
