import { beforeEach, expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, type Json, NO_ONE, readEnvelope, startContractFixture, UUID_V7 } from './contract-fixture.ts'

const CONTRACTS = '/api/v3/contract/contract'
let account: string

const fixture = await openForFile(startContractFixture())
beforeEach(async () => {
  account = (await fixture.createAccount()).document_id
})

async function countEvents(from = fixture): Promise<number> {
  const { rows } = await from.app.database.pool.query('select count(*)::int as count from event_occurrence')
  return rows[0].count
}

test('events#event-queue-switch, events#atomicity, webhooks#legacy-migration: with ENABLE_API_EVENT_QUEUE=false a change records and sends no event', async () => {
  await using off = await startContractFixture({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
  const owner = (await off.createAccount()).document_id
  const webhook = await off.createWebhook({ account: owner }, ['contract.create', 'contract.find-one'])
  const contract = await off.makeChange(owner)
  await off.app.admin('GET', `${CONTRACTS}/${contract}`)
  await off.app.settle()
  expect(await countEvents(off)).toBe(0)
  expect(await off.readLedger(webhook)).toEqual([])
  expect(off.receiver.requests).toEqual([])
  expect((await off.app.admin('GET', `${CONTRACTS}/${contract}`)).status).toBe(200)
})

test('events#event-queue-switch: with ENABLE_API_EVENT_QUEUE=false the test action and publishing are refused with the reason', async () => {
  await using off = await startContractFixture({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
  const owner = (await off.createAccount()).document_id
  const webhook = await off.createWebhook({ account: owner })
  const test = expectProblem(await off.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`), 409, 'conflict')
  expect(test.detail).toContain('ENABLE_API_EVENT_QUEUE')
  await off.app.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.paid' })
  const publication = { event: 'invoice.paid', account: owner, id: '1' }
  expectProblem(await off.app.admin('POST', '/api/v3/webhook/publish', publication), 409, 'conflict')
  expect(off.receiver.requests).toEqual([])
})

test('events#event-queue-switch, events#atomicity: a process with ENABLE_API_EVENT_QUEUE=false does not send waiting events, and keeps them', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.app.router.drain()
  await using off = await startContractFixture({
    database: fixture.app.database,
    receiver: fixture.receiver,
    clock: fixture.app.clock,
    env: { ENABLE_API_EVENT_QUEUE: 'false' },
  })
  await off.app.settle()
  expect(fixture.received(webhook)).toEqual([])
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  expect((await fixture.readLedger(webhook))[0]).toMatchObject({ status: 'success', attempts: 1 })
})

test('events#atomicity: the event row is written in the transaction of the change that causes it', async () => {
  const contract = await fixture.makeChange(account)
  const { rows } = await fixture.app.database.pool.query(
    `select c.xmin::text as change, e.xmin::text as event from contract c join event_occurrence e on e.resource_id = c.document_id::text
     where c.document_id = $1`,
    [contract],
  )
  expect(rows).toHaveLength(1)
  expect(rows[0].event).toBe(rows[0].change)
})

test('events#atomicity: a change whose event cannot be written is not made', async () => {
  const { pool } = fixture.app.database
  await pool.query(`alter table event_occurrence add constraint no_lease check (event <> 'contract.create') not valid`)
  const answer = await fixture.app.admin('POST', CONTRACTS, { account, name: 'Never' })
  await pool.query('alter table event_occurrence drop constraint no_lease')
  expect(answer.status).toBe(500)
  const { rows } = await pool.query(`select from contract where name = 'Never'`)
  expect(rows).toEqual([])
})

test('events#emission: a refused or failed operation records no event', async () => {
  const contract = await fixture.makeChange(account)
  const member = await fixture.app.signInMember([])
  const before = await countEvents()
  const refusals = [
    await fixture.app.anonymous('POST', CONTRACTS, { account, name: 'x' }),
    await member.call('POST', '/api/v3/identity/account', { name: 'x' }),
    await fixture.app.admin('PATCH', `${CONTRACTS}/${NO_ONE}`, { name: 'x' }),
    await fixture.app.admin('PATCH', `${CONTRACTS}/${contract}`, { name: '' }),
    await fixture.app.admin('POST', '/api/v3/webhook/event', { internal: 'contract.create' }),
  ]
  expect(refusals.map((answer) => answer.status)).toEqual([401, 403, 404, 422, 409])
  expect(await countEvents()).toBe(before)
})

test('events#emission, api#idempotency: a repeat with the same Idempotency-Key records no second event', async () => {
  const headers = { 'idempotency-key': `once-${account}` }
  const before = await countEvents()
  await fixture.app.admin('POST', CONTRACTS, { account, name: 'Once' }, headers)
  await fixture.app.admin('POST', CONTRACTS, { account, name: 'Once' }, headers)
  expect(await countEvents()).toBe(before + 1)
})

test('events#event-types: the event of a GET is recorded only while some active webhook subscribes to it', async () => {
  const contract = await fixture.makeChange(account)
  const read = () => fixture.app.admin('GET', `${CONTRACTS}/${contract}`)
  const before = await countEvents()
  await read()
  expect(await countEvents()).toBe(before)
  const webhook = await fixture.createWebhook({ account }, ['contract.find-one'])
  const subscribed = await countEvents()
  await read()
  expect(await countEvents()).toBe(subscribed + 1)
  await fixture.app.settle()
  expect(fixture.received(webhook).map((request) => readEnvelope(request))).toMatchObject([
    { type: 'contract.find-one', data: { account, id: contract } },
  ])
  await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: false })
  const inactive = await countEvents()
  await read()
  expect(await countEvents()).toBe(inactive)
})

test('events#publishing-from-outside: published events are durable at 202, routed like other events, and cannot be of our own types', async () => {
  await fixture.app.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.paid', account_scope: 'account' })
  const webhook = await fixture.createWebhook({ account }, ['invoice.paid'])
  const publish = (body: unknown) => fixture.app.admin('POST', '/api/v3/webhook/publish', body)
  const published = await publish({ event: 'invoice.paid', account, id: 'inv-1' })
  expect(published.status).toBe(202)
  expect(published.body.data).toEqual({ accepted: 1, events: [{ event_id: expect.stringMatching(UUID_V7) }] })
  const { rows } = await fixture.app.database.pool.query('select from event_occurrence where document_id = $1', [
    published.body.data.events[0].event_id,
  ])
  expect(rows).toHaveLength(1)
  await fixture.app.settle()
  expect(fixture.received(webhook).map((request) => readEnvelope(request))).toMatchObject([
    { id: published.body.data.events[0].event_id, type: 'invoice.paid', data: { account, id: 'inv-1' } },
  ])
  for (const event of ['contract.create', 'webhook.auto-disable', 'no.such'])
    expectProblem(await publish({ event, account, id: '1' }), 422, 'validation_failed')
})

test('events#publishing-from-outside: a call publishes up to 1,000 events, all or none, each once for its idempotency_key', async () => {
  await fixture.app.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.sent', account_scope: 'account' })
  const publish = (events: Json[]) => fixture.app.admin('POST', '/api/v3/webhook/publish', { events })
  const build = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      event: 'invoice.sent',
      account,
      id: `${at}`,
      idempotency_key: `${account}-${at}`,
    }))
  const before = await countEvents()
  const full = await publish(build(1000))
  expect(full.status).toBe(202)
  expect(full.body.data.accepted).toBe(1000)
  expect(await countEvents()).toBe(before + 1000)
  const again = await publish(build(1000))
  expect(again.body.data.events).toEqual(full.body.data.events)
  expect(await countEvents()).toBe(before + 1000)
  expectProblem(await publish(build(1001)), 422, 'validation_failed')
  expectProblem(await publish([]), 422, 'validation_failed')
  expectProblem(
    await publish([
      { event: 'invoice.sent', account, id: 'new' },
      { event: 'no.such', id: '2' },
    ]),
    422,
    'validation_failed',
  )
  expect(await countEvents()).toBe(before + 1000)
})
