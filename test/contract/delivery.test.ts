import { createHmac } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { VERSION } from '../../src/base/version.ts'
import { passRetrySchedule } from '../harness/delivery/retry-schedule.ts'
import type { ReceivedRequest } from '../harness/fakes/receiver.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { readEnvelope, startContractFixture, TIMESTAMP, UUID_V7 } from './contract-fixture.ts'

let account: string

const fixture = await openForFile(startContractFixture())
beforeEach(async () => {
  fixture.receiver.behave({ kind: 'status', status: 200 })
  account = (await fixture.createAccount()).document_id
})

/** `t` and `v1` of a delivery, and what they must be for this secret. */
function readSignature(request: ReceivedRequest, secret: string) {
  const match = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(request.headers['x-service-signature'] ?? '')
  if (!match) throw new Error(`x-service-signature is ${request.headers['x-service-signature']}`)
  const signed = Buffer.concat([Buffer.from(`${match[1]}.`), request.body])
  return { t: Number(match[1]), v1: match[2], expected: createHmac('sha256', secret).update(signed).digest('hex') }
}

/** One subscribed webhook of an account of its own, and its one delivery. */
async function deliverOne() {
  account = (await fixture.createAccount()).document_id
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  const contract = await fixture.makeChange(account)
  await fixture.app.settle()
  const [request] = fixture.received(webhook)
  if (!request) throw new Error('nothing was delivered')
  const [row] = await fixture.readLedger(webhook)
  return { webhook, contract, request, row }
}

test('webhooks#signature: x-service-signature is t=<unix seconds>,v1=<hex HMAC-SHA256 of t.body>, keyed with the whole secret', async () => {
  const { webhook, request } = await deliverOne()
  const { t, v1, expected } = readSignature(request, webhook.secret)
  expect(t).toBe(Math.floor(fixture.app.clock.now() / 1000))
  expect(v1).toBe(expected)
})

test('webhooks#signature: the Standard Webhooks headers sign the same body with the decoded 32 bytes', async () => {
  const { webhook, request } = await deliverOne()
  const { headers } = request
  expect(headers['webhook-id']).toBe(readEnvelope(request).id)
  expect(headers['webhook-timestamp']).toBe(String(readSignature(request, webhook.secret).t))
  const key = Buffer.from(webhook.secret.slice('whsec_'.length), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${request.body.toString('utf8')}`
  expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
})

test('webhooks#delivery-headers: a delivery is a POST of JSON with headers for service, event, dispatch and attempt', async () => {
  const { request, row } = await deliverOne()
  expect(request.method).toBe('POST')
  expect(request.headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': `Signalbox-Webhooks/${VERSION}`,
    'x-service-event': 'contract.create',
    'x-service-delivery': row.document_id,
    'x-service-attempt': '1',
  })
})

test('webhooks#envelope: the body has exactly these members', async () => {
  const { contract, request, row } = await deliverOne()
  const envelope = readEnvelope(request)
  expect(envelope).toEqual({
    id: row.event_id,
    type: 'contract.create',
    api_version: '2026-09-11',
    created_at: expect.stringMatching(TIMESTAMP),
    attempt: 1,
    data: {
      account,
      resource: 'contract',
      action: 'create',
      id: contract,
      url: `/api/v3/contract/contract/${contract}`,
    },
  })
  expect(envelope.id).toMatch(UUID_V7)
  expect(Object.keys(envelope)).toEqual(['id', 'type', 'api_version', 'created_at', 'attempt', 'data'])
})

test('webhooks#envelope: data.url reads the resource, and is null when the resource is gone', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create', 'contract.delete'])
  const contract = await fixture.makeChange(account)
  await fixture.app.settle()
  const read = await fixture.app.admin('GET', readEnvelope(fixture.received(webhook)[0]).data.url)
  expect(read.body.data).toMatchObject({ document_id: contract, name: 'Lease' })
  await fixture.app.admin('DELETE', `/api/v3/contract/contract/${contract}`)
  await fixture.app.settle()
  expect(readEnvelope(fixture.received(webhook)[1]).data).toMatchObject({ id: contract, url: null })
})

test('webhooks#envelope: the event id is the same for every webhook, and each has its own dispatch', async () => {
  const first = await fixture.createWebhook({ account }, ['contract.create'])
  const second = await fixture.createWebhook({ is_global: true }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  const [firstRequest, secondRequest] = [fixture.received(first)[0], fixture.received(second)[0]]
  expect(readEnvelope(firstRequest).id).toBe(readEnvelope(secondRequest).id)
  expect(firstRequest?.headers['x-service-delivery']).not.toBe(secondRequest?.headers['x-service-delivery'])
  await fixture.subscribe(second.id, ['webhook.test'])
})

test('webhooks#envelope, delivery#retry-timing: each attempt has its number, the same event id, and a signature of its own time', async () => {
  fixture.receiver.behaveNext({ kind: 'status', status: 500 })
  const { webhook } = await deliverOne()
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  const [first, second] = fixture.received(webhook) as [ReceivedRequest, ReceivedRequest]
  expect([readEnvelope(first).attempt, readEnvelope(second).attempt]).toEqual([1, 2])
  expect(second.headers['x-service-attempt']).toBe('2')
  expect(readEnvelope(second).id).toBe(readEnvelope(first).id)
  const signatures = [readSignature(first, webhook.secret), readSignature(second, webhook.secret)] as const
  for (const { v1, expected } of signatures) expect(v1).toBe(expected)
  expect(signatures[1].t - signatures[0].t).toBe(60)
})

test('delivery#retry-timing: failed attempts are retried exactly 1 m, 5 m, 30 m and 2 h after the one before, in order', async () => {
  fixture.receiver.behave({ kind: 'status', status: 500 })
  const { webhook, row } = await deliverOne()
  let posts = 1
  for (const delayMs of [60_000, 300_000, 1_800_000, 7_200_000]) {
    const waiting = await fixture.readDispatch(row.document_id)
    expect(waiting).toMatchObject({
      status: 'retrying',
      attempts: posts,
      last_error: 'http_5xx',
      last_status_code: 500,
    })
    expect(Date.parse(waiting.next_attempt_at)).toBe(fixture.app.clock.now() + delayMs)
    fixture.app.clock.advance(delayMs - 1)
    await fixture.app.settle()
    expect(fixture.received(webhook)).toHaveLength(posts)
    fixture.app.clock.advance(1)
    await fixture.app.settle()
    posts += 1
    expect(fixture.received(webhook)).toHaveLength(posts)
  }
})

test('delivery#automatic-attempts, delivery#statuses: after 5 POSTs the row is exhausted, without a sixth POST', async () => {
  fixture.receiver.behave({ kind: 'status', status: 500 })
  const { webhook, row } = await deliverOne()
  await passRetrySchedule(fixture.app)
  expect(await fixture.readDispatch(row.document_id)).toMatchObject({
    status: 'exhausted',
    attempts: 5,
    next_attempt_at: null,
  })
  fixture.app.clock.advance(365 * 86_400_000)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(5)
})

test('delivery#guarantees, delivery#redirects, delivery#statuses: a 3xx ends the delivery as failed and is not followed', async () => {
  for (const status of [300, 301, 302, 303, 304, 307, 308]) {
    fixture.receiver.behave({ kind: 'redirect', status, location: `${fixture.receiver.origin}/elsewhere` })
    const { webhook, row } = await deliverOne()
    expect(await fixture.readDispatch(row.document_id)).toMatchObject({
      status: 'failed',
      attempts: 1,
      last_status_code: status,
      last_error: 'redirect',
      next_attempt_at: null,
    })
    fixture.app.clock.advance(86_400_000)
    fixture.receiver.behave({ kind: 'status', status: 200 })
    await fixture.app.settle()
    expect(fixture.received(webhook)).toHaveLength(1)
  }
  expect(fixture.receiver.requests.filter((request) => request.path === '/elsewhere')).toEqual([])
})

test('delivery#gone, delivery#failure-count: a 410 ends the delivery as failed, is not retried, and counts as a failed delivery', async () => {
  fixture.receiver.behave({ kind: 'status', status: 410, headers: { 'retry-after': '1' } })
  const { webhook, row } = await deliverOne()
  const ended = { status: 'failed', attempts: 1, last_status_code: 410, last_error: 'http_4xx', next_attempt_at: null }
  expect(await fixture.readDispatch(row.document_id)).toMatchObject(ended)
  fixture.app.clock.advance(86_400_000)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 1 })
})

test('delivery#failed-attempts, delivery#retry-timing: a 401 after a rotation is retried on the schedule and succeeds once the secret is deployed', async () => {
  fixture.receiver.behaveNext({ kind: 'status', status: 401 })
  const { webhook, row } = await deliverOne()
  expect(await fixture.readDispatch(row.document_id)).toMatchObject({ status: 'retrying', last_error: 'http_4xx' })
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  expect(await fixture.readDispatch(row.document_id)).toMatchObject({
    status: 'success',
    attempts: 2,
    last_error: null,
  })
  expect(fixture.received(webhook)).toHaveLength(2)
})

test('delivery#retry-timing: every answer but a 2xx, a 3xx or a 410 is a failed attempt that is retried, without regard to Retry-After', async () => {
  for (const status of [400, 404, 409, 411, 429, 500, 503, 600]) {
    fixture.receiver.behaveNext({ kind: 'status', status, headers: { 'retry-after': '1' } })
    const { row } = await deliverOne()
    const waiting = await fixture.readDispatch(row.document_id)
    expect(waiting).toMatchObject({ status: 'retrying', last_status_code: status })
    expect(Date.parse(waiting.next_attempt_at)).toBe(fixture.app.clock.now() + 60_000)
  }
})

test('delivery#retry-timing, webhooks#callback-guard: a failed connection is a failed attempt with its class, and one POST', async () => {
  const kinds = {
    'reset-before-headers': 'reset',
    'close-before-headers': 'reset',
    'invalid-http': 'protocol',
  } as const
  for (const [kind, errorClass] of Object.entries(kinds)) {
    fixture.receiver.behaveNext({ kind: kind as keyof typeof kinds })
    const { webhook, row } = await deliverOne()
    expect(await fixture.readDispatch(row.document_id), kind).toMatchObject({
      status: 'retrying',
      attempts: 1,
      last_error: errorClass,
      last_status_code: null,
    })
    expect(fixture.received(webhook), kind).toHaveLength(1)
  }
})

test('delivery#statuses: any 2xx is a success', async () => {
  for (const status of [200, 201, 202, 204, 226, 299]) {
    fixture.receiver.behaveNext(status === 204 ? { kind: 'no-content' } : { kind: 'status', status })
    const { row } = await deliverOne()
    expect(await fixture.readDispatch(row.document_id)).toMatchObject({
      status: 'success',
      attempts: 1,
      last_status_code: status,
      last_error: null,
      delivered_at: new Date(fixture.app.clock.now()).toISOString(),
      next_attempt_at: null,
    })
  }
})

test('delivery#statuses: no answer within 15 s is a failed attempt of the class timeout', async () => {
  fixture.receiver.behaveNext({ kind: 'hang' })
  const { row } = await deliverOne()
  const ended = await fixture.readDispatch(row.document_id)
  expect(ended).toMatchObject({ status: 'retrying', last_error: 'timeout', attempts: 1 })
  expect(ended.last_duration_ms).toBeGreaterThanOrEqual(14_900)
  expect(ended.last_duration_ms).toBeLessThan(17_000)
})

test('delivery#url-and-secret-at-send-time, webhooks#secret-rotation: a waiting row is sent with the current URL and secret', async () => {
  fixture.receiver.behaveNext({ kind: 'status', status: 500 })
  const { webhook, row } = await deliverOne()
  const path = `/api/v3/webhook/webhook/${webhook.id}`
  const moved = { ...webhook, path: `${webhook.path}-moved` }
  await fixture.app.admin('PATCH', path, { url: `${fixture.receiver.origin}${moved.path}` })
  const { secret } = (await fixture.app.admin('POST', `${path}/rotate-secret`)).body.data
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  const [request] = fixture.received(moved) as [ReceivedRequest]
  const signature = readSignature(request, secret)
  expect(signature.v1).toBe(signature.expected)
  expect(readSignature(request, webhook.secret).expected).not.toBe(signature.v1)
  expect(request.headers['x-service-signature']?.match(/v1=/g)).toHaveLength(1)
  expect(await fixture.readDispatch(row.document_id)).toMatchObject({ status: 'success' })
})

test('webhooks#test-delivery, delivery#success: the test action answers 202 with a dispatch_id and delivers a signed webhook.test', async () => {
  const webhook = await fixture.createWebhook({ account })
  const answer = await fixture.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  expect(answer.status).toBe(202)
  expect(answer.body.data.dispatch_id).toMatch(UUID_V7)
  await fixture.app.settle()
  const [request] = fixture.received(webhook) as [ReceivedRequest]
  expect(readEnvelope(request)).toMatchObject({ type: 'webhook.test', data: { account, id: webhook.id } })
  const { v1, expected } = readSignature(request, webhook.secret)
  expect(v1).toBe(expected)
  expect(await fixture.readDispatch(answer.body.data.dispatch_id)).toMatchObject({
    status: 'success',
    is_test: true,
    event: 'webhook.test',
  })
})

test('webhooks#test-delivery: the test action posts to this webhook only, subscribed or not, active or not', async () => {
  const bystander = await fixture.createWebhook({ is_global: true })
  const webhook = await fixture.createWebhook({ account })
  await fixture.app.database.pool.query('update webhook_event set deleted_at = now() where webhook = $1', [webhook.id])
  await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: false })
  await fixture.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  expect(fixture.received(bystander)).toEqual([])
})

test('delivery#guarantees: delivery is at least once: an attempt of a lost process is repeated with the same event id', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.app.router.drain()
  const [row] = await fixture.readLedger(webhook)
  const leaseUntil = new Date(fixture.app.clock.now() + 30_000)
  await fixture.app.database.pool.query(
    `with worker as (insert into delivery_worker (worker_id, lease_until) values ('lost', $2))
     update webhook_dispatch_open set lease_owner = 'lost', next_attempt_at = null, last_attempt_at = $3,
       fence = fence + 1, attempts = attempts + 1
     where document_id = $1`,
    [row.document_id, leaseUntil, new Date(fixture.app.clock.now())],
  )
  await fixture.app.settle()
  expect(fixture.received(webhook)).toEqual([])
  fixture.app.clock.advance(30_000)
  await fixture.app.settle()
  const envelopes = fixture.received(webhook).map((request) => readEnvelope(request))
  expect(envelopes).toMatchObject([{ id: row.event_id, attempt: 2 }])
  expect(await fixture.readDispatch(row.document_id)).toMatchObject({ status: 'success', attempts: 2 })
})

test('delivery#guarantees: an event is delivered once to each webhook without failures', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  for (let change = 0; change < 5; change += 1) await fixture.makeChange(account)
  await fixture.app.settle()
  const ids = fixture.received(webhook).map((request) => readEnvelope(request).id)
  expect(ids).toHaveLength(5)
  expect(new Set(ids).size).toBe(5)
})
