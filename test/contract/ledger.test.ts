import { beforeEach, expect, test } from 'vitest'
import { passRetrySchedule } from '../harness/delivery/retry-schedule.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import {
  expectProblem,
  type Json,
  NO_ONE,
  readEnvelope,
  startContractFixture,
  TIMESTAMP,
  UUID_V7,
} from './contract-fixture.ts'

const DISPATCHES = '/api/v3/webhook/dispatch'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
beforeEach(() => fixture.receiver.behave({ kind: 'status', status: 200 }))

/** A webhook with one delivery that ended in this status. It has no other rows. */
async function deliverOne(answer: 'success' | 'failed' | 'retrying' | 'exhausted') {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  if (answer === 'failed') fixture.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  else if (answer !== 'success') fixture.receiver.behave({ kind: 'status', status: 503, body: 'busy' })
  await fixture.makeChange(account)
  await fixture.app.settle()
  await fixture.subscribe(webhook.id, ['webhook.test'])
  if (answer === 'exhausted') await passRetrySchedule(fixture.app)
  const [row] = await fixture.readLedger(webhook)
  expect(row.status).toBe(answer)
  fixture.receiver.behave({ kind: 'status', status: 200 })
  return { webhook, row, id: row.document_id as string }
}

const replay = (id: string, body?: unknown) => fixture.app.admin('POST', `${DISPATCHES}/${id}/replay`, body)
const CONFIRMED = { confirm_duplicate: true }

test('delivery#ledger-row, delivery#ledger-endpoints: a row has exactly these members, under the id that is its dispatch_id', async () => {
  const { webhook, row, id } = await deliverOne('success')
  const at = expect.stringMatching(TIMESTAMP)
  expect(row).toEqual({
    document_id: expect.stringMatching(UUID_V7),
    webhook: webhook.id,
    event_id: expect.stringMatching(UUID_V7),
    event: 'contract.create',
    account,
    status: 'success',
    attempts: 1,
    next_attempt_at: null,
    waiting_reason: null,
    last_attempt_at: at,
    last_status_code: 200,
    last_error: null,
    last_duration_ms: expect.any(Number),
    delivered_at: at,
    is_test: false,
    is_replay: false,
    created_at: at,
    updated_at: at,
  })
  const { attempts_log: log, ...single } = await fixture.readDispatch(id)
  expect(single).toEqual(row)
  expect(log).toHaveLength(1)
})

test('delivery#ledger-row: the attempt log has one entry per POST: time, duration, status code, error class, answer, trigger', async () => {
  const { id } = await deliverOne('exhausted')
  fixture.receiver.behave({ kind: 'status', status: 200, body: 'x'.repeat(5_000) })
  await replay(id)
  await fixture.app.settle()
  const { attempts_log: log } = await fixture.readDispatch(id)
  expect(log.map((entry: Json) => entry.attempt)).toEqual([1, 2, 3, 4, 5, 6])
  expect(log[0]).toMatchObject({
    trigger: 'schedule',
    started_at: expect.stringMatching(TIMESTAMP),
    duration_ms: expect.any(Number),
    status_code: 503,
    error_class: 'http_5xx',
    response_excerpt: 'busy',
  })
  expect(log[5]).toMatchObject({ trigger: 'replay', status_code: 200, error_class: null })
  expect(log[5].response_excerpt).toBe('x'.repeat(1024))
})

test('delivery#ledger-row: the trigger of a test delivery is test', async () => {
  const webhook = await fixture.createWebhook({ account })
  const { body } = await fixture.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  await fixture.app.settle()
  const row = await fixture.readDispatch(body.data.dispatch_id)
  expect(row).toMatchObject({ is_test: true, attempts_log: [{ trigger: 'test', attempt: 1 }] })
})

test('delivery#ledger-row, delivery#statuses: a row is pending before its first POST, then retrying after a failed one', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeChange(account)
  await fixture.app.app.router.drain()
  const [pending] = await fixture.readLedger(webhook)
  expect(pending).toMatchObject({ status: 'pending', attempts: 0, last_attempt_at: null, last_error: null })
  await fixture.app.settle()
  await fixture.subscribe(webhook.id, ['webhook.test'])
  expect((await fixture.readLedger(webhook))[0]).toMatchObject({
    status: 'retrying',
    attempts: 1,
    last_error: 'http_5xx',
  })
})

test('delivery#replay, delivery#automatic-attempts: a replay of an exhausted row is one more POST, and attempts continues to count', async () => {
  const { webhook, id } = await deliverOne('exhausted')
  fixture.receiver.behave({ kind: 'status', status: 500 })
  for (const attempts of [6, 7]) {
    const answer = await replay(id)
    expect(answer.status).toBe(202)
    await fixture.app.settle()
    fixture.app.clock.advance(30 * 86_400_000)
    await fixture.app.settle()
    expect(await fixture.readDispatch(id)).toMatchObject({ status: 'exhausted', attempts, next_attempt_at: null })
    expect(fixture.received(webhook)).toHaveLength(attempts)
  }
  fixture.receiver.behave({ kind: 'status', status: 200 })
  await replay(id)
  await fixture.app.settle()
  expect(await fixture.readDispatch(id)).toMatchObject({ status: 'success', attempts: 8, last_error: null })
})

test('delivery#replay, delivery#ledger-row, webhooks#release-history: a replay has the next attempt number and the same event id', async () => {
  const { webhook, id } = await deliverOne('success')
  await replay(id, CONFIRMED)
  await fixture.app.settle()
  const envelopes = fixture.received(webhook).map(readEnvelope)
  expect(envelopes.map((envelope) => envelope.attempt)).toEqual([1, 2])
  expect(envelopes[1].id).toBe(envelopes[0].id)
  expect(await fixture.readDispatch(id)).toMatchObject({ status: 'success', attempts: 2 })
})

test('delivery#replay: without confirm_duplicate a success, pending or retrying row is refused with 409', async () => {
  for (const status of ['success', 'retrying'] as const) {
    const { webhook, id } = await deliverOne(status)
    for (const body of [undefined, {}, { confirm_duplicate: false }])
      expectProblem(await replay(id, body), 409, 'duplicate_not_confirmed')
    const posts = fixture.received(webhook).length
    await fixture.app.settle()
    expect(fixture.received(webhook)).toHaveLength(posts)
    expect((await replay(id, CONFIRMED)).status).toBe(202)
    await fixture.app.settle()
    expect(fixture.received(webhook)).toHaveLength(posts + 1)
  }
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.app.router.drain()
  await fixture.subscribe(webhook.id, ['webhook.test'])
  const [pending] = await fixture.readLedger(webhook)
  expectProblem(await replay(pending.document_id), 409, 'duplicate_not_confirmed')
  await fixture.app.settle()
})

test('delivery#replay: an exhausted or failed row needs no confirmation', async () => {
  for (const status of ['exhausted', 'failed'] as const) {
    const { id } = await deliverOne(status)
    const answer = await replay(id)
    expect(answer.status).toBe(202)
    expect(answer.body.data).toMatchObject({ document_id: id, event: 'contract.create' })
    await fixture.app.settle()
    expect(await fixture.readDispatch(id)).toMatchObject({ status: 'success' })
  }
})

test('delivery#replay: a replay of a retrying row makes its next attempt now, and the rest of the schedule follows: five POSTs', async () => {
  const { webhook, id } = await deliverOne('retrying')
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await replay(id, CONFIRMED)
  await fixture.app.settle()
  expect(await fixture.readDispatch(id)).toMatchObject({ status: 'retrying', attempts: 2 })
  expect(fixture.received(webhook)).toHaveLength(2)
  for (let attempt = 3; attempt <= 6; attempt += 1) {
    fixture.app.clock.advance(2 * 3_600_000)
    await fixture.app.settle()
  }
  expect(await fixture.readDispatch(id)).toMatchObject({ status: 'exhausted', attempts: 5, next_attempt_at: null })
  expect(fixture.received(webhook)).toHaveLength(5)
})

test('delivery#replay: a replay with a 3xx answer fails', async () => {
  const { id } = await deliverOne('exhausted')
  fixture.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  await replay(id)
  await fixture.app.settle()
  const row = await fixture.readDispatch(id)
  expect(['failed', 'exhausted']).toContain(row.status)
  expect(row).toMatchObject({ attempts: 6, next_attempt_at: null, last_error: 'redirect' })
})

test('delivery#replay: a replay takes only confirm_duplicate, and a missing row is a 404', async () => {
  const { id } = await deliverOne('success')
  expectProblem(await replay(id, { confirm_duplicate: 'yes' }), 422, 'validation_failed')
  expectProblem(await replay(id, { ...CONFIRMED, more: 1 }), 422, 'validation_failed')
  expectProblem(await replay(NO_ONE, CONFIRMED), 404, 'not_found')
})

test('delivery#ledger-endpoints: the ledger can be filtered by each documented field', async () => {
  const { webhook, row } = await deliverOne('success')
  const filters = [
    `webhook|eq|${webhook.id}`,
    'event|in|contract.create,contract.update',
    `event_id|eq|${row.event_id}`,
    `account|eq|${account}`,
    'status|eq|success',
    `created_at|between|${row.created_at},${row.created_at}`,
    'last_status_code|gte|200',
    'is_test|eq|false',
  ]
  const query = new URLSearchParams(filters.map((filter) => ['filters', filter]))
  const { body } = await fixture.app.admin('GET', `${DISPATCHES}?${query}`)
  expect(body.data.map((row: Json) => row.document_id)).toEqual([row.document_id])
  for (const miss of ['status|eq|failed', 'is_test|eq|true', 'last_status_code|gt|200', 'event|ne|contract.create']) {
    const narrowed = new URLSearchParams([...query, ['filters', miss]])
    expect((await fixture.app.admin('GET', `${DISPATCHES}?${narrowed}`)).body.data, miss).toEqual([])
  }
})

test('api#filters: paging by cursor lists every row exactly once, newest first by default', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  for (let change = 0; change < 7; change += 1) {
    fixture.app.clock.advance(change % 2)
    await fixture.makeChange(account)
  }
  await fixture.app.settle()
  const all = (await fixture.readLedger(webhook)).map((row) => row.document_id)
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({
      filters: `webhook|eq|${webhook.id}`,
      page_size: '3',
      count: 'true',
      ...(cursor && { cursor }),
    })
    const { body } = await fixture.app.admin('GET', `${DISPATCHES}?${query}`)
    expect(body.pagination).toMatchObject({ page_size: 3, total: 7 })
    seen.push(...body.data.map((row: Json) => row.document_id))
    cursor = body.pagination.next_cursor
  }
  expect(seen).toEqual(all.toReversed())
})

test('api#filters: page_size is 1 to 200; unknown fields and operators are a 422 that lists the allowed ones', async () => {
  for (const size of ['0', '201', '-1', '1.5', 'ten'])
    expectProblem(await fixture.app.admin('GET', `${DISPATCHES}?page_size=${size}`), 422, 'validation_failed')
  for (const size of ['1', '200'])
    expect((await fixture.app.admin('GET', `${DISPATCHES}?page_size=${size}`)).status).toBe(200)
  const field = expectProblem(
    await fixture.app.admin('GET', `${DISPATCHES}?filters=url|eq|x`),
    422,
    'validation_failed',
  )
  for (const allowed of ['webhook', 'event', 'status', 'is_test']) expect(field.errors[0].message).toContain(allowed)
  const operator = expectProblem(
    await fixture.app.admin('GET', `${DISPATCHES}?filters=status|is|x`),
    422,
    'validation_failed',
  )
  for (const allowed of ['eq', 'in', 'like', 'null']) expect(operator.errors[0].message).toContain(allowed)
  expectProblem(await fixture.app.admin('GET', `${DISPATCHES}?sort=last_error`), 422, 'validation_failed')
  expectProblem(await fixture.app.admin('GET', `${DISPATCHES}?cursor=forged`), 422, 'validation_failed')
})

test('delivery#guarantees: ten events of one resource are ten deliveries with ids of their own, in any order', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.update'])
  const contract = await fixture.makeChange(account)
  for (let change = 0; change < 10; change += 1)
    await fixture.app.admin('PATCH', `/api/v3/contract/contract/${contract}`, { name: `name ${change}` })
  await fixture.app.settle()
  const envelopes = fixture.received(webhook).map(readEnvelope)
  expect(new Set(envelopes.map((envelope) => envelope.id)).size).toBe(10)
  expect(new Set(envelopes.map((envelope) => envelope.data.id))).toEqual(new Set([contract]))
})

test('delivery#holding: purging a webhook deletes only its own rows and attempts', async () => {
  const kept = await deliverOne('success')
  const gone = await deliverOne('success')
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${gone.webhook.id}/purge`)
  expectProblem(await fixture.app.admin('GET', `${DISPATCHES}/${gone.id}`), 404, 'not_found')
  expect((await fixture.readDispatch(kept.id)).attempts_log).toHaveLength(1)
})
