import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { passRetrySchedule } from '../harness/delivery/retry-schedule.ts'
import {
  type ContractWorld,
  expectProblem,
  type Json,
  NO_ONE,
  readEnvelope,
  startContractWorld,
  TIMESTAMP,
  UUID_V7,
} from './contract-world.ts'

const DISPATCHES = '/api/v3/webhook/dispatch'
let world: ContractWorld
let account: string

beforeAll(async () => {
  world = await startContractWorld()
  account = (await world.createAccount()).document_id
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(() => world.receiver.behave({ kind: 'status', status: 200 }))

/** A webhook with one delivery that ended in this status. It has no other rows. */
async function deliverOne(answer: 'success' | 'failed' | 'retrying' | 'exhausted') {
  const webhook = await world.createWebhook({ account }, ['contract.create'])
  if (answer === 'failed') world.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  else if (answer !== 'success') world.receiver.behave({ kind: 'status', status: 503, body: 'busy' })
  await world.makeChange(account)
  await world.app.settle()
  await world.subscribe(webhook.id, ['webhook.test'])
  if (answer === 'exhausted') await passRetrySchedule(world.app)
  const [row] = await world.readLedger(webhook)
  expect(row.status).toBe(answer)
  world.receiver.behave({ kind: 'status', status: 200 })
  return { webhook, row, id: row.document_id as string }
}

const replay = (id: string, body?: unknown) => world.app.admin('POST', `${DISPATCHES}/${id}/replay`, body)
const CONFIRMED = { confirm_duplicate: true }

it('Ledger 1, Ledger 3, Ledger 4, Endpoints 12, delivery#ledger-row: a row has exactly these members, under the id that is its dispatch_id', async () => {
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
    last_attempt_at: at,
    last_status_code: 200,
    last_error: null,
    last_duration_ms: expect.any(Number),
    delivered_at: at,
    is_test: false,
    created_at: at,
    updated_at: at,
  })
  const { attempts_log: log, ...single } = await world.readDispatch(id)
  expect(single).toEqual(row)
  expect(log).toHaveLength(1)
})

it('delivery#ledger-row: the attempt log has one entry per POST: time, duration, status code, error class, answer, trigger', async () => {
  const { id } = await deliverOne('exhausted')
  world.receiver.behave({ kind: 'status', status: 200, body: 'x'.repeat(5_000) })
  await replay(id)
  await world.app.settle()
  const { attempts_log: log } = await world.readDispatch(id)
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

it('delivery#ledger-row: the trigger of a test delivery is test', async () => {
  const webhook = await world.createWebhook({ account })
  const { body } = await world.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  await world.app.settle()
  const row = await world.readDispatch(body.data.dispatch_id)
  expect(row).toMatchObject({ is_test: true, attempts_log: [{ trigger: 'test', attempt: 1 }] })
})

it('Ledger 2, delivery#statuses: a row is pending before its first POST, then retrying after a failed one', async () => {
  const webhook = await world.createWebhook({ account }, ['contract.create'])
  world.receiver.behave({ kind: 'status', status: 500 })
  await world.makeChange(account)
  await world.app.app.router.drain()
  const [pending] = await world.readLedger(webhook)
  expect(pending).toMatchObject({ status: 'pending', attempts: 0, last_attempt_at: null, last_error: null })
  await world.app.settle()
  await world.subscribe(webhook.id, ['webhook.test'])
  expect((await world.readLedger(webhook))[0]).toMatchObject({
    status: 'retrying',
    attempts: 1,
    last_error: 'http_5xx',
  })
})

it('States 15, Limits 7, delivery#replay: a replay of an exhausted row is one more POST, and attempts continues to count', async () => {
  const { webhook, id } = await deliverOne('exhausted')
  world.receiver.behave({ kind: 'status', status: 500 })
  for (const attempts of [6, 7]) {
    const answer = await replay(id)
    expect(answer.status).toBe(202)
    await world.app.settle()
    world.app.clock.advance(30 * 86_400_000)
    await world.app.settle()
    expect(await world.readDispatch(id)).toMatchObject({ status: 'exhausted', attempts, next_attempt_at: null })
    expect(world.received(webhook)).toHaveLength(attempts)
  }
  world.receiver.behave({ kind: 'status', status: 200 })
  await replay(id)
  await world.app.settle()
  expect(await world.readDispatch(id)).toMatchObject({ status: 'success', attempts: 8, last_error: null })
})

it('States 16, Ledger 1, delivery#replay, Versioning 3: a replay has the next attempt number and the same event id', async () => {
  const { webhook, id } = await deliverOne('success')
  await replay(id, CONFIRMED)
  await world.app.settle()
  const envelopes = world.received(webhook).map(readEnvelope)
  expect(envelopes.map((one) => one.attempt)).toEqual([1, 2])
  expect(envelopes[1].id).toBe(envelopes[0].id)
  expect(await world.readDispatch(id)).toMatchObject({ status: 'success', attempts: 2 })
})

it('States 16, Endpoints 14, delivery#replay: without confirm_duplicate a success, pending or retrying row is refused with 409', async () => {
  for (const status of ['success', 'retrying'] as const) {
    const { webhook, id } = await deliverOne(status)
    for (const body of [undefined, {}, { confirm_duplicate: false }])
      expectProblem(await replay(id, body), 409, 'duplicate_not_confirmed')
    const posts = world.received(webhook).length
    await world.app.settle()
    expect(world.received(webhook)).toHaveLength(posts)
    expect((await replay(id, CONFIRMED)).status).toBe(202)
    await world.app.settle()
    expect(world.received(webhook)).toHaveLength(posts + 1)
  }
  const webhook = await world.createWebhook({ account }, ['contract.create'])
  await world.makeChange(account)
  await world.app.app.router.drain()
  await world.subscribe(webhook.id, ['webhook.test'])
  const [pending] = await world.readLedger(webhook)
  expectProblem(await replay(pending.document_id), 409, 'duplicate_not_confirmed')
  await world.app.settle()
})

it('delivery#replay: an exhausted or failed row needs no confirmation', async () => {
  for (const status of ['exhausted', 'failed'] as const) {
    const { id } = await deliverOne(status)
    const answer = await replay(id)
    expect(answer.status).toBe(202)
    expect(answer.body.data).toMatchObject({ document_id: id, event: 'contract.create' })
    await world.app.settle()
    expect(await world.readDispatch(id)).toMatchObject({ status: 'success' })
  }
})

it('delivery#replay: a replay of a retrying row makes its next attempt now, and the rest of the schedule follows: five POSTs', async () => {
  const { webhook, id } = await deliverOne('retrying')
  world.receiver.behave({ kind: 'status', status: 500 })
  await replay(id, CONFIRMED)
  await world.app.settle()
  expect(await world.readDispatch(id)).toMatchObject({ status: 'retrying', attempts: 2 })
  expect(world.received(webhook)).toHaveLength(2)
  for (let attempt = 3; attempt <= 6; attempt += 1) {
    world.app.clock.advance(2 * 3_600_000)
    await world.app.settle()
  }
  expect(await world.readDispatch(id)).toMatchObject({ status: 'exhausted', attempts: 5, next_attempt_at: null })
  expect(world.received(webhook)).toHaveLength(5)
})

it('delivery#replay: a replay with a 3xx answer fails', async () => {
  const { id } = await deliverOne('exhausted')
  world.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  await replay(id)
  await world.app.settle()
  const row = await world.readDispatch(id)
  expect(['failed', 'exhausted']).toContain(row.status)
  expect(row).toMatchObject({ attempts: 6, next_attempt_at: null, last_error: 'redirect' })
})

it('Endpoints 14: a replay takes only confirm_duplicate, and a missing row is a 404', async () => {
  const { id } = await deliverOne('success')
  expectProblem(await replay(id, { confirm_duplicate: 'yes' }), 422, 'validation_failed')
  expectProblem(await replay(id, { ...CONFIRMED, more: 1 }), 422, 'validation_failed')
  expectProblem(await replay(NO_ONE, CONFIRMED), 404, 'not_found')
})

it('Endpoints 13, delivery#ledger-endpoints: the ledger can be filtered by each documented field', async () => {
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
  const { body } = await world.app.admin('GET', `${DISPATCHES}?${query}`)
  expect(body.data.map((one: Json) => one.document_id)).toEqual([row.document_id])
  for (const miss of ['status|eq|failed', 'is_test|eq|true', 'last_status_code|gt|200', 'event|ne|contract.create']) {
    const narrowed = new URLSearchParams([...query, ['filters', miss]])
    expect((await world.app.admin('GET', `${DISPATCHES}?${narrowed}`)).body.data, miss).toEqual([])
  }
})

it('api#filters: paging by cursor lists every row exactly once, newest first by default', async () => {
  const webhook = await world.createWebhook({ account }, ['contract.create'])
  for (let change = 0; change < 7; change += 1) {
    world.app.clock.advance(change % 2)
    await world.makeChange(account)
  }
  await world.app.settle()
  const all = (await world.readLedger(webhook)).map((row) => row.document_id)
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({
      filters: `webhook|eq|${webhook.id}`,
      page_size: '3',
      count: 'true',
      ...(cursor && { cursor }),
    })
    const { body } = await world.app.admin('GET', `${DISPATCHES}?${query}`)
    expect(body.pagination).toMatchObject({ page_size: 3, total: 7 })
    seen.push(...body.data.map((row: Json) => row.document_id))
    cursor = body.pagination.next_cursor
  }
  expect(seen).toEqual(all.toReversed())
})

it('api#filters: page_size is 1 to 200; unknown fields and operators are a 422 that lists the allowed ones', async () => {
  for (const size of ['0', '201', '-1', '1.5', 'ten'])
    expectProblem(await world.app.admin('GET', `${DISPATCHES}?page_size=${size}`), 422, 'validation_failed')
  for (const size of ['1', '200'])
    expect((await world.app.admin('GET', `${DISPATCHES}?page_size=${size}`)).status).toBe(200)
  const field = expectProblem(await world.app.admin('GET', `${DISPATCHES}?filters=url|eq|x`), 422, 'validation_failed')
  for (const allowed of ['webhook', 'event', 'status', 'is_test']) expect(field.errors[0].message).toContain(allowed)
  const operator = expectProblem(
    await world.app.admin('GET', `${DISPATCHES}?filters=status|is|x`),
    422,
    'validation_failed',
  )
  for (const allowed of ['eq', 'in', 'like', 'null']) expect(operator.errors[0].message).toContain(allowed)
  expectProblem(await world.app.admin('GET', `${DISPATCHES}?sort=last_error`), 422, 'validation_failed')
  expectProblem(await world.app.admin('GET', `${DISPATCHES}?cursor=forged`), 422, 'validation_failed')
})

it('Events 5: ten events of one resource are ten deliveries with ids of their own, in any order', async () => {
  const webhook = await world.createWebhook({ account }, ['contract.update'])
  const contract = await world.makeChange(account)
  for (let change = 0; change < 10; change += 1)
    await world.app.admin('PATCH', `/api/v3/contract/contract/${contract}`, { name: `name ${change}` })
  await world.app.settle()
  const envelopes = world.received(webhook).map(readEnvelope)
  expect(new Set(envelopes.map((one) => one.id)).size).toBe(10)
  expect(new Set(envelopes.map((one) => one.data.id))).toEqual(new Set([contract]))
})

it('delivery#holding: purging a webhook deletes only its own rows and attempts', async () => {
  const kept = await deliverOne('success')
  const gone = await deliverOne('success')
  await world.app.admin('DELETE', `/api/v3/webhook/webhook/${gone.webhook.id}/purge`)
  expectProblem(await world.app.admin('GET', `${DISPATCHES}/${gone.id}`), 404, 'not_found')
  expect((await world.readDispatch(kept.id)).attempts_log).toHaveLength(1)
})
