import { beforeAll, describe, expect, test } from 'vitest'
import { type ContractWebhook, type Json, startContractFixture } from '../../../test/contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

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

const ids = (answer: TestAnswer) => answer.body.data.map((row: Json) => row.document_id)
const typeId = async (name: string) => (await fixture.findEventIds([name]))[0] as string
const markVisible = async (name: string, isVisible: boolean) =>
  fixture.app.admin('PATCH', `${TYPES}/${await typeId(name)}/tenant-visible`, { is_tenant_visible: isVisible })

async function signInAs(role: string, account: string): Promise<TestCall> {
  const { call, userId } = await fixture.signInWithRoles([account], [role])
  await fixture.app.admin('PATCH', `/api/v3/identity/user/${userId}`, { roles: [] })
  return call
}

async function deliver(owner: { account: string } | { is_global: true }, account: string): Promise<Delivered> {
  const hook = await fixture.createWebhook(owner, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  const [dispatch] = await fixture.readLedger(hook)
  const links = await fixture.app.admin('GET', `${LINKS}?filters=webhook|eq|${hook.id}`)
  return { hook, link: links.body.data[0].document_id, event: dispatch.event_id, dispatch: dispatch.document_id }
}

const fixture = await openForFile(startContractFixture())
const mine: string = (await fixture.createAccount()).document_id
const theirs: string = (await fixture.createAccount()).document_id
/** A developer of `mine`, without any role but that one. */
const developer = await signInAs('account-developer', mine)
const viewer = await signInAs('account-viewer', mine)
const own = await deliver({ account: mine }, mine)
const foreign = await deliver({ account: theirs }, theirs)
const global = await deliver({ is_global: true }, theirs)

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
    const kept = await fixture.readWebhook(foreign.hook)
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
      expect(ids(listed).filter((text: string) => others.includes(text))).toEqual([])
      expect(listed.body.pagination.total).toBe(listed.body.data.length)
    }
    const links = (await developer('GET', LINKS)).body.data
    expect(new Set(links.map((link: Json) => link.webhook))).toEqual(new Set([own.hook.id]))
    expect((await developer('GET', `${DISPATCHES}?filters=webhook|eq|${global.hook.id}`)).body.data).toEqual([])
  })

  test('its own webhooks can be made, changed, tested, replayed and deleted', async () => {
    const made = await developer('POST', HOOKS, { url: `${fixture.receiver.origin}/made`, account: mine })
    expect(made.status).toBe(201)
    const path = `${HOOKS}/${made.body.data.document_id}`
    expect((await developer('PATCH', path, { name: 'Mine' })).body.data.name).toBe('Mine')
    expect((await developer('POST', `${path}/rotate-secret`)).status).toBe(200)
    expect((await developer('POST', `${path}/test`)).status).toBe(202)
    await fixture.app.settle()
    const [dispatch] = (await developer('GET', `${DISPATCHES}?filters=webhook|eq|${made.body.data.document_id}`)).body
      .data
    expect(
      (await developer('POST', `${DISPATCHES}/${dispatch.document_id}/replay`, { confirm_duplicate: true })).status,
    ).toBe(202)
    expect((await developer('DELETE', path)).status).toBe(200)
    expect((await developer('DELETE', `${path}/purge`)).status).toBe(200)
  })

  test('a webhook is neither made global nor given to another account', async () => {
    const url = `${fixture.receiver.origin}/escape`
    const refused = { status: 403, body: { code: 'permission_denied' } }
    expect(await developer('POST', HOOKS, { url, is_global: true })).toMatchObject(refused)
    expect(await developer('POST', HOOKS, { url, account: theirs })).toMatchObject(refused)
    expect((await developer('POST', HOOKS, { url })).status).toBe(422)
    expect(await developer('PATCH', `${HOOKS}/${own.hook.id}`, { is_global: true })).toMatchObject(refused)
    expect(await developer('PATCH', `${HOOKS}/${own.hook.id}`, { account: theirs })).toMatchObject(refused)
    expect(await fixture.readWebhook(own.hook)).toMatchObject({ is_global: false, account: mine })
  })

  test('why an event was delivered says nothing of other webhooks', async () => {
    const { data } = (await developer('GET', `${EVENTS}/${own.event}/routing`)).body
    expect(data.webhooks.map((webhook: Json) => webhook.webhook)).toEqual([own.hook.id])
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
    for (const [method, path] of [
      ['GET', '/api/v3/webhook/catalogue/status'],
      ['POST', '/api/v3/webhook/catalogue/sync'],
    ] as const)
      expect(await developer(method, path)).toMatchObject({ status: 403, body: { missing: { what: 'scope' } } })
  })

  test('a 403 says what is missing: the permission, its scope, or the account', async () => {
    const url = `${fixture.receiver.origin}/missing`
    const missingOf = async (answer: Promise<TestAnswer>) => (await answer).body.missing
    expect(await missingOf(viewer('POST', HOOKS, { url, account: mine }))).toEqual({
      what: 'permission',
      permission: 'webhook:create',
    })
    expect(await missingOf(developer('POST', HOOKS, { url, is_global: true }))).toEqual({
      what: 'scope',
      permission: 'webhook:create',
    })
    expect(await missingOf(developer('POST', HOOKS, { url, account: theirs }))).toEqual({
      what: 'account',
      permission: 'webhook:create',
      account: theirs,
    })
  })

  test('an export holds the webhooks of its account only', async () => {
    for (const format of ['json', 'ndjson', 'csv']) {
      const { status, body } = await viewer('GET', `${HOOKS}/export?format=${format}`)
      const text = JSON.stringify(body)
      expect([status, text.includes(own.hook.id)]).toEqual([200, true])
      for (const { hook } of [foreign, global]) expect(text).not.toContain(hook.id)
    }
    const filtered = await viewer('GET', `${HOOKS}/export?filters=account|eq|${theirs}`)
    expect(filtered.body).toEqual([])
  })

  test('the dashboard counts the deliveries and webhooks of its account only', async () => {
    const { data } = (await viewer('GET', '/api/v3/webhook/dashboard/summary')).body
    const count = async (path: string) => (await viewer('GET', `${path}?count=true`)).body.pagination.total
    const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, value) => all + value, 0)
    expect(sum(data.deliveries_24h)).toBe(await count(DISPATCHES))
    expect(data.webhooks.active + data.webhooks.inactive).toBe(await count(HOOKS))
    expect(data.series_24h).toHaveLength(24)
    expect(data.series_24h.reduce((all: number, hour: Json) => all + hour.success, 0)).toBe(data.deliveries_24h.success)
    expect(data.catalogue).toBeNull()
    const everybody = (await fixture.app.admin('GET', '/api/v3/webhook/dashboard/summary')).body.data
    expect(sum(everybody.deliveries_24h)).toBeGreaterThan(sum(data.deliveries_24h))
  })

  test('a bulk replay takes rows of its account only, and others do not see the job', async () => {
    const replayAll = (call: TestCall, body: object) =>
      call('POST', `${DISPATCHES}/replay`, { filters: ['event|eq|contract.create'], confirm_duplicate: true, ...body })
    const preview = (await replayAll(developer, { dry_run: true })).body.data
    const listed = await developer('GET', `${DISPATCHES}?filters=event|eq|contract.create&count=true`)
    expect([preview.matched, preview.total]).toEqual(Array(2).fill(listed.body.pagination.total))
    const taken = { filters: [`document_id|in|${foreign.dispatch},${global.dispatch},${own.dispatch}`] }
    const { data: job } = (await replayAll(developer, taken)).body
    expect(job).toMatchObject({ total: 1, accounts: [mine] })
    const all = (await replayAll(fixture.app.admin, { limit: 1 })).body.data
    await fixture.app.settle()
    expect(ids(await developer('GET', '/api/v3/webhook/replay-job'))).toEqual([job.document_id])
    const stranger = await signInAs('account-developer', theirs)
    const jobs = '/api/v3/webhook/replay-job'
    expect(ids(await stranger('GET', jobs))).toEqual([])
    for (const [call, id] of [
      [stranger, job.document_id],
      [developer, all.document_id],
    ] as const) {
      expect((await call('GET', `${jobs}/${id}`)).status).toBe(404)
      for (const move of ['pause', 'resume', 'cancel'])
        expect((await call('POST', `${jobs}/${id}/${move}`)).status).toBe(404)
    }
    expect((await developer('GET', `${jobs}/${job.document_id}`)).body.data.status).toBe('done')
    expect((await viewer('POST', `${jobs}/${job.document_id}/cancel`)).status).toBe(403)
  })

  test('a job of somebody with more accounts is not seen from one of them', async () => {
    const { call } = await fixture.signInWithRoles([mine, theirs], ['account-developer'])
    const made = await call('POST', `${DISPATCHES}/replay`, { filters: [`document_id|eq|${foreign.dispatch}`] })
    expect(made.body.data.accounts.toSorted()).toEqual([mine, theirs].toSorted())
    const path = `/api/v3/webhook/replay-job/${made.body.data.document_id}`
    expect([(await call('GET', path)).status, (await developer('GET', path)).status]).toEqual([200, 404])
  })

  test('events of hidden types do not exist, unless a webhook of the account is subscribed to them', async () => {
    await fixture.app.admin('POST', TYPES, { internal: 'risk.flagged' })
    const publish = (account: string) =>
      fixture.app.admin('POST', '/api/v3/webhook/publish', { event: 'risk.flagged', account, id: 'r' })
    const hidden = (await publish(mine)).body.data.events[0].event_id
    const list = `${EVENTS}?filters=event|eq|risk.flagged&count=true`
    expect((await developer('GET', list)).body).toMatchObject({ data: [], pagination: { total: 0 } })
    for (const path of [`${EVENTS}/${hidden}`, `${EVENTS}/${hidden}/routing`])
      expect((await developer('GET', path)).status).toBe(404)
    await fixture.app.admin('POST', LINKS, { webhook: own.hook.id, event: await typeId('risk.flagged') })
    expect((await developer('GET', list)).body.pagination.total).toBe(1)
    expect((await developer('GET', `${EVENTS}/${hidden}`)).status).toBe(200)
  })

  test('a repeat with an idempotency key gets the first answer again, while the caller reaches the account', async () => {
    const headers = { 'idempotency-key': 'tenant-job' }
    const body = { filters: [`document_id|eq|${own.dispatch}`] }
    const [first, again] = [
      await developer('POST', `${DISPATCHES}/replay`, body, headers),
      await developer('POST', `${DISPATCHES}/replay`, body, headers),
    ]
    expect([first.status, again.status, again.headers['idempotency-replayed']]).toEqual([202, 202, 'true'])
    expect(again.body.data.document_id).toBe(first.body.data.document_id)
  })
})

describe('publishing for an account', () => {
  let publisher: TestCall
  const publish = (body: object, headers = {}) => publisher('POST', '/api/v3/webhook/publish', body, headers)
  beforeAll(async () => {
    publisher = await signInAs('account-publisher', mine)
    for (const [internal, is_tenant_visible] of [
      ['order.paid', true],
      ['order.hidden', false],
      ['order.purge', true],
    ] as const)
      await fixture.app.admin('POST', TYPES, { internal, is_tenant_visible })
    const none = { internal: 'order.nobody', account_scope: 'none', is_tenant_visible: true }
    await fixture.app.admin('POST', TYPES, none)
  })

  test.each([
    ['alone', {}],
    ['with a key of the request', { 'idempotency-key': 'order-1' }],
  ])('records an event of a type that the caller sees, %s', async (_title, headers) => {
    const sent = await publish({ event: 'order.paid', account: mine, id: 'o-1' }, headers)
    expect(sent.status, JSON.stringify(sent.body)).toBe(202)
    const { data } = (await fixture.app.admin('GET', `${EVENTS}/${sent.body.data.events[0].event_id}`)).body
    expect(data).toMatchObject({ event: 'order.paid', account: mine })
    const repeated = await publish({ event: 'order.paid', account: mine, id: 'o-1' }, headers)
    expect(repeated.headers['idempotency-replayed'] === 'true').toBe('idempotency-key' in headers)
    expect(repeated.status).toBe(202)
  })

  test('is refused for another account, for none, and for a purge, with what is missing', async () => {
    for (const [body, what] of [
      [{ event: 'order.paid', account: theirs, id: 'o' }, 'account'],
      [{ event: 'order.paid', account: '01990000-0000-7000-8000-000000000000', id: 'o' }, 'account'],
      [{ event: 'order.paid', id: 'o' }, 'scope'],
      [{ event: 'order.purge', account: mine, id: 'o' }, 'scope'],
    ] as const) {
      for (const sent of [body, { events: [{ event: 'order.paid', account: mine, id: 'o' }, body] }])
        expect(await publish(sent)).toMatchObject({
          status: 403,
          body: { missing: { what, permission: 'event:publish' } },
        })
    }
    expect((await fixture.app.admin('GET', `${EVENTS}?filters=resource_id|eq|o`)).body.data).toEqual([])
  })

  test('takes a hidden type for one that does not exist, with a key and without', async () => {
    for (const event of ['order.hidden', 'order.nobody', 'order.never-registered', 'webhook.update'])
      for (const more of [{}, { idempotency_key: `key of ${event}` }]) {
        const refused = await publish({ event, account: mine, id: 'o', ...more })
        const message = `${event} is not an event type that you see; GET /api/v3/webhook/event lists them`
        expect(refused).toMatchObject({
          status: 422,
          body: { errors: [{ path: 'event', code: 'unknown_event', message }] },
        })
      }
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
    await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')
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
    await fixture.app.admin('POST', LINKS, link)
    const set = (await developer('GET', `${HOOKS}/${own.hook.id}/events`)).body.data.events.map(
      (event: Json) => event.document_id,
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
