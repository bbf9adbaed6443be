import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ContractWebhook,
  type ContractWorld,
  type Json,
  startContractWorld,
} from '../../test/contract/contract-world.ts'
import type { TestAnswer, TestCall } from '../../test/harness/app.ts'

const HOOKS = '/api/v3/webhook/webhook'
const LINKS = '/api/v3/webhook/webhook-event'
const DISPATCHES = '/api/v3/webhook/dispatch'
const EVENTS = '/api/v3/webhook/event-occurrence'
const TYPES = '/api/v3/webhook/event'

/** A webhook with a subscription, an event and a dispatch of it. */
interface Delivered {
  hook: ContractWebhook
  link: string
  event: string
  dispatch: string
}

let world: ContractWorld
let mine: string
let theirs: string
/** A developer of `mine`, without any role but that one. */
let developer: TestCall
let viewer: TestCall
let own: Delivered
let foreign: Delivered
let global: Delivered

const ids = (answer: TestAnswer) => answer.body.data.map((row: Json) => row.document_id)
const typeId = async (name: string) => (await world.findEventIds([name]))[0] as string
const markVisible = async (name: string, isVisible: boolean) =>
  world.app.admin('PATCH', `${TYPES}/${await typeId(name)}/tenant-visible`, { is_tenant_visible: isVisible })

async function signInAs(role: string, account: string): Promise<TestCall> {
  const { body } = await world.app.admin('GET', `/api/v3/identity/role?filters=name|eq|${role}`)
  const { call, userId } = await world.app.signInMember([account as never])
  const membership = { user: userId, roles: [body.data[0].document_id] }
  await world.app.admin('PATCH', `/api/v3/identity/account/${account}/member`, membership)
  await world.app.admin('PATCH', `/api/v3/identity/user/${userId}`, { roles: [] })
  return call
}

async function deliver(owner: { account: string } | { is_global: true }, account: string): Promise<Delivered> {
  const hook = await world.createWebhook(owner, ['contract.create'])
  await world.makeChange(account)
  await world.app.settle()
  const [dispatch] = await world.readLedger(hook)
  const links = await world.app.admin('GET', `${LINKS}?filters=webhook|eq|${hook.id}`)
  return { hook, link: links.body.data[0].document_id, event: dispatch.event_id, dispatch: dispatch.document_id }
}

beforeAll(async () => {
  world = await startContractWorld()
  mine = (await world.createAccount()).document_id
  theirs = (await world.createAccount()).document_id
  developer = await signInAs('account-developer', mine)
  viewer = await signInAs('account-viewer', mine)
  own = await deliver({ account: mine }, mine)
  foreign = await deliver({ account: theirs }, theirs)
  global = await deliver({ is_global: true }, theirs)
})
afterAll(() => world[Symbol.asyncDispose]())

/** Every request on one row of a webhook, as `method path body`. */
const requestsOn = (row: Delivered): [string, string, object | undefined][] => [
  ['GET', `${HOOKS}/${row.hook.id}`, undefined],
  ['PATCH', `${HOOKS}/${row.hook.id}`, { name: 'taken' }],
  ['PATCH', `${HOOKS}/${row.hook.id}`, { name: 7 }],
  ['PATCH', `${HOOKS}/${row.hook.id}`, { url: 'ftp://x' }],
  ['PATCH', `${HOOKS}/${row.hook.id}/active`, { is_actived: false }],
  ['POST', `${HOOKS}/${row.hook.id}/rotate-secret`, undefined],
  ['POST', `${HOOKS}/${row.hook.id}/test`, undefined],
  ['GET', `${HOOKS}/${row.hook.id}/events`, undefined],
  ['PUT', `${HOOKS}/${row.hook.id}/events`, { events: [] }],
  ['GET', `${LINKS}/${row.link}`, undefined],
  ['PATCH', `${LINKS}/${row.link}`, { event: row.event }],
  ['DELETE', `${LINKS}/${row.link}`, undefined],
  ['GET', `${DISPATCHES}/${row.dispatch}`, undefined],
  ['POST', `${DISPATCHES}/${row.dispatch}/replay`, { confirm_duplicate: true }],
  ['DELETE', `${HOOKS}/${row.hook.id}/purge`, undefined],
  ['DELETE', `${HOOKS}/${row.hook.id}`, undefined],
]

describe('for a caller with an account role', () => {
  test('rows of other accounts and of global webhooks do not exist, for any request', async () => {
    for (const row of [foreign, global])
      for (const [method, path, body] of requestsOn(row)) {
        const { status, body: problem } = await developer(method as 'GET', path, body)
        expect([method, path, status, problem.code]).toEqual([method, path, 404, 'not_found'])
      }
    for (const path of [`${EVENTS}/${foreign.event}`, `${EVENTS}/${foreign.event}/routing`])
      expect((await developer('GET', path)).status).toBe(404)
    const kept = await world.readWebhook(foreign.hook)
    expect(kept).toMatchObject({ name: null, is_actived: true, deleted_at: null })
  })

  test('lists hold rows of its account only, with their total', async () => {
    const lists: [string, string][] = [
      [HOOKS, own.hook.id],
      [DISPATCHES, own.dispatch],
      [EVENTS, own.event],
    ]
    for (const [path, id] of lists) {
      const listed = await developer('GET', `${path}?count=true`)
      expect(ids(listed)).toContain(id)
      const others = [foreign, global].flatMap(({ hook, dispatch, event }) => [hook.id, dispatch, event])
      expect(ids(listed).filter((one: string) => others.includes(one))).toEqual([])
      expect(listed.body.pagination.total).toBe(listed.body.data.length)
    }
    const links = (await developer('GET', LINKS)).body.data
    expect(new Set(links.map((link: Json) => link.webhook))).toEqual(new Set([own.hook.id]))
    expect((await developer('GET', `${DISPATCHES}?filters=webhook|eq|${global.hook.id}`)).body.data).toEqual([])
  })

  test('its own webhooks can be made, changed, tested, replayed and deleted', async () => {
    const made = await developer('POST', HOOKS, { url: `${world.receiver.origin}/made`, account: mine })
    expect(made.status).toBe(201)
    const path = `${HOOKS}/${made.body.data.document_id}`
    expect((await developer('PATCH', path, { name: 'Mine' })).body.data.name).toBe('Mine')
    expect((await developer('POST', `${path}/rotate-secret`)).status).toBe(200)
    expect((await developer('POST', `${path}/test`)).status).toBe(202)
    await world.app.settle()
    const [dispatch] = (await developer('GET', `${DISPATCHES}?filters=webhook|eq|${made.body.data.document_id}`)).body
      .data
    expect(
      (await developer('POST', `${DISPATCHES}/${dispatch.document_id}/replay`, { confirm_duplicate: true })).status,
    ).toBe(202)
    expect((await developer('DELETE', path)).status).toBe(200)
    expect((await developer('DELETE', `${path}/purge`)).status).toBe(200)
  })

  test('a webhook is neither made global nor given to another account', async () => {
    const url = `${world.receiver.origin}/escape`
    const refused = { status: 403, body: { code: 'permission_denied' } }
    expect(await developer('POST', HOOKS, { url, is_global: true })).toMatchObject(refused)
    expect(await developer('POST', HOOKS, { url, account: theirs })).toMatchObject(refused)
    expect((await developer('POST', HOOKS, { url })).status).toBe(422)
    expect(await developer('PATCH', `${HOOKS}/${own.hook.id}`, { is_global: true })).toMatchObject(refused)
    expect(await developer('PATCH', `${HOOKS}/${own.hook.id}`, { account: theirs })).toMatchObject(refused)
    expect(await world.readWebhook(own.hook)).toMatchObject({ is_global: false, account: mine })
  })

  test('why an event was delivered says nothing of other webhooks', async () => {
    const { data } = (await developer('GET', `${EVENTS}/${own.event}/routing`)).body
    expect(data.webhooks.map((one: Json) => one.webhook)).toEqual([own.hook.id])
    expect(data.summary).toEqual({ delivered: 1 })
    const asked = await developer('GET', `${EVENTS}/${own.event}/routing?webhook=${global.hook.id}`)
    expect(asked.body.data.webhooks).toEqual([])
  })

  test('a viewer reads what a developer reads, and changes nothing', async () => {
    for (const [method, path, body] of requestsOn(own)) {
      if (method === 'GET') expect((await viewer('GET', path)).status).toBe(200)
      else expect((await viewer(method as 'PATCH', path, body)).status).toBe(403)
    }
  })

  test('what concerns all accounts stays closed', async () => {
    for (const path of [
      `${HOOKS}/export?format=json`,
      '/api/v3/webhook/catalogue/status',
      '/api/v3/webhook/replay-job',
    ])
      expect((await developer('GET', path)).status).toBe(403)
    const filters = [`document_id|eq|${own.dispatch}`]
    expect((await developer('POST', `${DISPATCHES}/replay`, { filters })).status).toBe(403)
    expect((await developer('POST', '/api/v3/webhook/catalogue/sync')).status).toBe(403)
  })
})

describe('the catalogue of a caller with an account role', () => {
  test('holds types with account scope and the mark, and no other', async () => {
    const { data } = (await developer('GET', `${TYPES}?page_size=200&count=true`)).body
    const names = data.map((type: Json) => type.internal)
    expect(names).toContain('contract.create')
    expect(names.filter((name: string) => /^(user|role|webhook|session)\b/.test(name))).toEqual([])
    expect(data.every((type: Json) => type.account_scope === 'account' && type.is_tenant_visible)).toBe(true)
    expect((await developer('GET', `${TYPES}/${await typeId('contract.create')}`)).status).toBe(200)
    expect((await developer('GET', `${TYPES}/${await typeId('user.create')}`)).status).toBe(404)
  })

  test('follows the mark that an administrator sets, which a sync keeps', async () => {
    const path = `${TYPES}/${await typeId('contract.delete')}`
    expect((await markVisible('contract.delete', false)).body.data.is_tenant_visible).toBe(false)
    await world.app.admin('POST', '/api/v3/webhook/catalogue/sync')
    expect((await developer('GET', path)).status).toBe(404)
    expect((await markVisible('contract.delete', true)).status).toBe(200)
    expect((await markVisible('contract.delete', true)).body.message).toContain('visible')
    expect((await developer('GET', path)).status).toBe(200)
    // A type without an account never reaches the webhook of an account, whatever its mark says.
    await markVisible('user.create', true)
    expect((await developer('GET', `${TYPES}/${await typeId('user.create')}`)).status).toBe(404)
    expect((await developer('PATCH', `${path}/tenant-visible`, { is_tenant_visible: true })).status).toBe(403)
  })

  test('limits what its webhooks are subscribed to, but for what they have already', async () => {
    const hidden = await typeId('webhook.update')
    const link = { webhook: own.hook.id, event: hidden }
    const unknown = (path: string) => ({ status: 422, body: { errors: [{ path, code: 'unknown_event' }] } })
    expect(await developer('POST', LINKS, link)).toMatchObject(unknown('event'))
    expect(await developer('PUT', `${HOOKS}/${own.hook.id}/events`, { events: [hidden] })).toMatchObject(
      unknown('events.0'),
    )
    for (const entry of [hidden, 'webhook.update', 'no.such-event']) {
      const set = await developer('PUT', `${HOOKS}/${own.hook.id}/events`, { events: ['contract.update', entry] })
      expect(set, entry).toMatchObject(unknown('events.1'))
      const body = { url: 'https://hooks.example.com/', account: own.hook.row.account, events: [entry] }
      expect(await developer('POST', HOOKS, body), entry).toMatchObject(unknown('events.0'))
    }
    expect(await developer('PATCH', `${LINKS}/${own.link}`, { event: hidden })).toMatchObject(unknown('event'))
    expect(
      await developer('POST', LINKS, { webhook: foreign.hook.id, event: await typeId('contract.update') }),
    ).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'webhook', code: 'unknown_webhook' }] },
    })
    await world.app.admin('POST', LINKS, link)
    const set = (await developer('GET', `${HOOKS}/${own.hook.id}/events`)).body.data.events.map(
      (one: Json) => one.document_id,
    )
    expect(set).toContain(hidden)
    for (const events of [set, ['webhook.update', 'contract.update']]) {
      const again = await developer('PUT', `${HOOKS}/${own.hook.id}/events`, { events })
      expect(again.status, JSON.stringify(again.body)).toBe(200)
    }
    const body = { url: 'https://hooks.example.com/', account: own.hook.row.account, events: ['contract.update'] }
    expect((await developer('POST', HOOKS, body)).status).toBe(201)
  })
})
