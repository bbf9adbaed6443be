import { expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, type Json, NO_ONE, readEnvelope, startContractFixture } from './contract-fixture.ts'

const LINKS = '/api/v3/webhook/webhook-event'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
const other: string = (await fixture.createAccount()).document_id

const setPath = (id: string) => `/api/v3/webhook/webhook/${id}/events`
const namesOf = (set: Json) => set.events.map((event: Json) => event.internal)
const readSet = async (id: string) => (await fixture.app.admin('GET', setPath(id))).body.data
const listLinks = async (id: string) =>
  (await fixture.app.admin('GET', `${LINKS}?filters=webhook|eq|${id}&page_size=200`)).body.data as Json[]
const readLinks = async (id: string) =>
  (await fixture.app.database.pool.query('select * from webhook_event where webhook = $1 order by created_at', [id]))
    .rows

test('webhooks#subscriptions: a link joins one webhook to one event type, once', async () => {
  const webhook = await fixture.createWebhook({ account })
  const [event] = await fixture.findEventIds(['contract.create'])
  const created = await fixture.app.admin('POST', LINKS, { webhook: webhook.id, event })
  expect(created.status).toBe(201)
  expect(created.body.data).toMatchObject({ webhook: webhook.id, event })
  expectProblem(await fixture.app.admin('POST', LINKS, { webhook: webhook.id, event }), 409, 'conflict')
  expectProblem(await fixture.app.admin('POST', LINKS, { webhook: NO_ONE, event }), 422, 'validation_failed')
  expectProblem(
    await fixture.app.admin('POST', LINKS, { webhook: webhook.id, event: NO_ONE }),
    422,
    'validation_failed',
  )
})

test('webhooks#subscriptions: unsubscribing soft-deletes the link and subscribing again restores it', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const [link] = (await listLinks(webhook.id)).filter((link) => link.event)
  const [event] = await fixture.findEventIds(['contract.create'])
  const own = (await listLinks(webhook.id)).find((link) => link.event === event)
  const removed = await fixture.app.admin('DELETE', `${LINKS}/${own.document_id}`)
  expect(removed.status).toBe(200)
  expect(removed.body.data.deleted_at).not.toBeNull()
  expect(link).toBeDefined()
  expect(namesOf(await readSet(webhook.id))).toEqual(['webhook.test'])
  expect((await readLinks(webhook.id)).find((row) => row.event === event).deleted_at).not.toBeNull()
  await fixture.subscribe(webhook.id, ['contract.create'])
  const revived = (await readLinks(webhook.id)).filter((row) => row.event === event)
  expect(revived).toHaveLength(1)
  expect(revived[0]).toMatchObject({ document_id: own.document_id, deleted_at: null })
})

test('webhooks#event-set, events#synthetic-event-types, webhooks#webhook: webhook.test is subscribed at create', async () => {
  const webhook = await fixture.createWebhook({ account })
  expect(namesOf(await readSet(webhook.id))).toEqual(['webhook.test'])
})

test('webhooks#event-set, events#synthetic-event-types: replacing the set prepends webhook.test once, in the body or not', async () => {
  const webhook = await fixture.createWebhook({ account })
  const set = await fixture.subscribe(webhook.id, ['contract.create', 'account.update'])
  expect(namesOf(set)).toEqual(['webhook.test', 'account.update', 'contract.create'])
  const withTest = await fixture.subscribe(webhook.id, ['contract.create', 'webhook.test'])
  expect(namesOf(withTest)).toEqual(['webhook.test', 'contract.create'])
  const onlyTest = await fixture.subscribe(webhook.id, ['webhook.test'])
  expect(namesOf(onlyTest)).toEqual(['webhook.test'])
})

test('webhooks#event-set: webhook.test cannot be unsubscribed or moved to another event type', async () => {
  const webhook = await fixture.createWebhook({ account })
  const [link] = await listLinks(webhook.id)
  expectProblem(await fixture.app.admin('DELETE', `${LINKS}/${link.document_id}`), 409, 'conflict')
  const [event] = await fixture.findEventIds(['contract.create'])
  expectProblem(await fixture.app.admin('PATCH', `${LINKS}/${link.document_id}`, { event }), 409, 'conflict')
  expect(namesOf(await readSet(webhook.id))).toEqual(['webhook.test'])
})

test('webhooks#event-set: PUT events keeps present links, inserts new ones, soft-deletes absent ones', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create', 'contract.update'])
  const before = await readLinks(webhook.id)
  fixture.app.clock.advance(1_000)
  const set = await fixture.subscribe(webhook.id, ['contract.update', 'contract.delete'])
  expect(namesOf(set)).toEqual(['webhook.test', 'contract.delete', 'contract.update'])
  const [createId, updateId, deleteId] = await fixture.findEventIds([
    'contract.create',
    'contract.update',
    'contract.delete',
  ])
  const after = await readLinks(webhook.id)
  const rowOf = (rows: Json[], event: string | undefined) => rows.find((row) => row.event === event)
  expect(rowOf(after, updateId)).toEqual(rowOf(before, updateId))
  expect(rowOf(after, deleteId)).toMatchObject({ deleted_at: null })
  expect(rowOf(after, createId).deleted_at.getTime()).toBe(fixture.app.clock.now())
})

test('webhooks#event-set: an empty list, an unknown id or name, or none at all is a 422', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  for (const body of [{ events: [] }, {}, { events: [NO_ONE] }, { events: ['contract.nothing'] }, { events: null }]) {
    expectProblem(await fixture.app.admin('PUT', setPath(webhook.id), body), 422, 'validation_failed')
  }
  expect(namesOf(await readSet(webhook.id))).toEqual(['webhook.test', 'contract.create'])
})

test('webhooks#event-set: one id is enough', async () => {
  const webhook = await fixture.createWebhook({ account })
  const [event] = await fixture.findEventIds(['contract.create'])
  expect((await fixture.app.admin('PUT', setPath(webhook.id), { events: [event] })).status).toBe(200)
})

test('delivery#ledger-endpoints: /events reads the event set, and the links have CRUD routes', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const [created, moved] = await fixture.findEventIds(['contract.create', 'contract.update'])
  const link = (await listLinks(webhook.id)).find((link) => link.event === created)
  const read = await fixture.app.admin('GET', `${LINKS}/${link.document_id}`)
  expect(read.body.data).toEqual(link)
  const changed = await fixture.app.admin('PATCH', `${LINKS}/${link.document_id}`, { event: moved })
  expect(changed.body.data).toMatchObject({ webhook: webhook.id, event: moved })
  expect(namesOf(await readSet(webhook.id))).toEqual(['webhook.test', 'contract.update'])
  expectProblem(await fixture.app.admin('GET', `${LINKS}/${NO_ONE}`), 404, 'not_found')
})

test('webhooks#soft-delete: the links of a deleted webhook are neither listed nor read', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const links = await listLinks(webhook.id)
  expect(links).toHaveLength(2)
  expect((await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${webhook.id}`)).status).toBe(200)
  expect(await listLinks(webhook.id)).toEqual([])
  for (const link of links)
    expectProblem(await fixture.app.admin('GET', `${LINKS}/${link.document_id}`), 404, 'not_found')
})

test('events#routing-rules: an account webhook receives account events of its own account only', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const own = await fixture.makeChange(account)
  await fixture.makeChange(other)
  await fixture.app.settle()
  expect(fixture.received(webhook).map((request) => readEnvelope(request).data)).toMatchObject([{ account, id: own }])
})

test('webhooks#scope, events#routing-rules: a global webhook receives the events of every account', async () => {
  const webhook = await fixture.createWebhook({ is_global: true }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.makeChange(other)
  await fixture.app.settle()
  const accounts = fixture.received(webhook).map((request) => readEnvelope(request).data.account)
  expect(accounts.sort()).toEqual([account, other].sort())
})

test('events#events-without-an-owner: an account webhook may subscribe to a none event, and the answer warns that it is not delivered', async () => {
  const webhook = await fixture.createWebhook({ account })
  const set = await fixture.app.admin('PUT', setPath(webhook.id), {
    events: await fixture.findEventIds(['role.create', 'contract.create']),
  })
  expect(set.status).toBe(200)
  expect(set.body.data.warnings).toMatchObject([{ event: 'role.create', code: 'never_fires' }])
  expect(set.body.message).toContain('role.create')
  const [event] = await fixture.findEventIds(['user.create'])
  const link = await fixture.app.admin('POST', LINKS, { webhook: webhook.id, event })
  expect(link.body.data.warnings).toMatchObject([{ event: 'user.create', code: 'never_fires' }])
})

test('events#events-without-an-owner: a none event is delivered to a global webhook, without a warning, and not to an account webhook', async () => {
  const scoped = await fixture.createWebhook({ account }, ['role.create'])
  const global = await fixture.createWebhook({ is_global: true })
  const set = await fixture.subscribe(global.id, ['role.create'])
  expect(set.warnings).toEqual([])
  await fixture.app.admin('POST', '/api/v3/identity/role', { name: `r-${global.id}`, permissions: [] })
  await fixture.app.settle()
  expect(fixture.received(scoped)).toEqual([])
  expect(await fixture.readLedger(scoped)).toEqual([])
  expect(fixture.received(global)).toHaveLength(1)
  expect(readEnvelope(fixture.received(global)[0]).data.account).toBeNull()
})

test('events#purge-events, events#emission: purge events have data.account null and are delivered to global webhooks only', async () => {
  const scoped = await fixture.createWebhook({ account }, ['webhook.purge', 'webhook.delete'])
  const global = await fixture.createWebhook({ is_global: true }, ['webhook.purge'])
  const gone = await fixture.createWebhook({ account })
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${gone.id}`)
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${gone.id}/purge`)
  await fixture.app.settle()
  expect(fixture.received(scoped).map((request) => readEnvelope(request).type)).toEqual(['webhook.delete'])
  const envelopes = fixture.received(global).map(readEnvelope)
  expect(envelopes).toMatchObject([{ type: 'webhook.purge', data: { account: null, id: gone.id, url: null } }])
})

test('events#routing-rules, webhooks#activation: an inactive webhook gets no dispatch rows, also not later for events of that time', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const active = (isActived: boolean) =>
    fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: isActived })
  await active(false)
  await fixture.makeChange(account)
  await fixture.app.settle()
  expect(await fixture.readLedger(webhook)).toEqual([])
  await active(true)
  await fixture.app.settle()
  expect(await fixture.readLedger(webhook)).toEqual([])
  await fixture.makeChange(account)
  await fixture.app.settle()
  expect(await fixture.readLedger(webhook)).toHaveLength(1)
})

test('events#routing-rules: only subscribed events are delivered, and none after the unsubscription', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.update'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  expect(await fixture.readLedger(webhook)).toEqual([])
  await fixture.subscribe(webhook.id, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  await fixture.subscribe(webhook.id, ['webhook.test'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  expect((await fixture.readLedger(webhook)).map((row) => row.event)).toEqual(['contract.create'])
})
