import { Writable } from 'node:stream'
import pino from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { passRetrySchedule } from '../harness/delivery/retry-schedule.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { type ContractWebhook, expectProblem, readEnvelope, startContractFixture } from './contract-fixture.ts'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
beforeEach(() => fixture.receiver.behave({ kind: 'status', status: 200 }))

/** Deliveries that fail with one attempt: a redirect is terminal. */
async function failTimes(count: number) {
  fixture.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  for (let change = 0; change < count; change += 1) await fixture.makeChange(account)
  await fixture.app.settle()
}

async function succeedOnce() {
  fixture.receiver.behave({ kind: 'status', status: 200 })
  await fixture.makeChange(account)
  await fixture.app.settle()
}

const unsubscribe = (webhook: ContractWebhook) => fixture.subscribe(webhook.id, ['webhook.test'])
const activate = (webhook: ContractWebhook, isActived: boolean) =>
  fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: isActived })

test('delivery#automatic-disable, delivery#failure-count: the 20th failed delivery in a row disables the webhook, the 19th does not', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(19)
  expect(await fixture.readWebhook(webhook)).toMatchObject({
    is_actived: true,
    consecutive_failures: 19,
    disabled_at: null,
    disabled_reason: null,
  })
  await failTimes(1)
  expect(await fixture.readWebhook(webhook)).toMatchObject({
    is_actived: false,
    consecutive_failures: 20,
    disabled_at: new Date(fixture.app.clock.now()).toISOString(),
    disabled_reason: 'consecutive-failures',
  })
})

test('delivery#automatic-disable: an auto-disabled webhook gets no further rows until it is activated', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(20)
  await succeedOnce()
  expect(await fixture.readLedger(webhook)).toHaveLength(20)
  await activate(webhook, true)
  await succeedOnce()
  expect(await fixture.readLedger(webhook)).toHaveLength(21)
  expect(await fixture.readWebhook(webhook)).toMatchObject({
    is_actived: true,
    consecutive_failures: 0,
    disabled_at: null,
  })
  await unsubscribe(webhook)
})

test('delivery#failure-count: any success sets the count to 0', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(19)
  await succeedOnce()
  expect(await fixture.readWebhook(webhook)).toMatchObject({ is_actived: true, consecutive_failures: 0 })
  await failTimes(19)
  expect(await fixture.readWebhook(webhook)).toMatchObject({ is_actived: true, consecutive_failures: 19 })
  await unsubscribe(webhook)
})

test('delivery#failure-count, webhooks#webhook: five failed POSTs of one delivery count as one failure', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeChange(account)
  await fixture.app.settle()
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
  await passRetrySchedule(fixture.app)
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 1, is_actived: true })
  await unsubscribe(webhook)
})

test('delivery#failure-count: test and replay attempts do not increase the count, and reset it on success', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(3)
  await unsubscribe(webhook)
  const [row] = await fixture.readLedger(webhook)
  const test = () => fixture.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
  const replay = () => fixture.app.admin('POST', `/api/v3/webhook/dispatch/${row.document_id}/replay`)
  await test()
  await replay()
  await fixture.app.settle()
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 3 })
  fixture.receiver.behave({ kind: 'status', status: 200 })
  await replay()
  await fixture.app.settle()
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
  await fixture.app.database.pool.query('update webhook set consecutive_failures = 3 where document_id = $1', [
    webhook.id,
  ])
  await test()
  await fixture.app.settle()
  expect(await fixture.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
})

test('delivery#failure-count: an automatic disable records webhook.auto-disable, which other webhooks receive', async () => {
  const watcher = await fixture.createWebhook({ is_global: true }, ['webhook.auto-disable'])
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(20)
  fixture.receiver.behave({ kind: 'status', status: 200 })
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  const dispatches = await fixture.readLedger(watcher)
  expect(dispatches.map((row) => row.event)).toEqual(['webhook.auto-disable'])
  expect(fixture.received(watcher).map((request) => readEnvelope(request).data)).toMatchObject([
    { id: webhook.id, url: `/api/v3/webhook/webhook/${webhook.id}` },
  ])
})

test('delivery#failure-count: an automatic disable is logged and counted in the metrics', async () => {
  const lines: string[] = []
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk))
      done()
    },
  })
  await using logged = await startContractFixture({ logger: pino({ level: 'warn' }, stream) })
  const owner = (await logged.createAccount()).document_id
  const webhook = await logged.createWebhook({ account: owner }, ['contract.create'])
  logged.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  for (let change = 0; change < 20; change += 1) await logged.makeChange(owner)
  await logged.app.settle()
  expect(await logged.readMetric('webhook_out_notices_total{event="webhook.auto-disable"}')).toBe(1)
  const notices = lines.map((line) => JSON.parse(line)).filter((line) => line.event === 'webhook.auto-disable')
  expect(notices).toMatchObject([{ webhook: webhook.id, consecutive_failures: 20 }])
})

test('delivery#holding, webhooks#activation: waiting rows of an inactive webhook are held until it is active again', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  fixture.receiver.behaveNext({ kind: 'status', status: 500 })
  await fixture.makeChange(account)
  await fixture.app.settle()
  await activate(webhook, false)
  fixture.app.clock.advance(86_400_000)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  expect((await fixture.readLedger(webhook))[0]).toMatchObject({ status: 'retrying', attempts: 1 })
  await activate(webhook, true)
  await fixture.app.settle()
  expect((await fixture.readLedger(webhook))[0]).toMatchObject({ status: 'success', attempts: 2 })
  await unsubscribe(webhook)
})

test('delivery#holding, delivery#statuses, webhooks#soft-delete: a soft delete cancels waiting rows without further POSTs', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  fixture.receiver.behaveNext({ kind: 'status', status: 500 })
  await fixture.makeChange(account)
  await fixture.app.settle()
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${webhook.id}`)
  fixture.app.clock.advance(86_400_000)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  expect((await fixture.readLedger(webhook))[0]).toMatchObject({ status: 'cancelled', next_attempt_at: null })
})

test('delivery#holding: an event recorded before its webhook was deleted ends without a POST', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.app.router.drain()
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${webhook.id}`)
  await fixture.app.settle()
  expect(fixture.received(webhook)).toEqual([])
  expect(await fixture.readLedger(webhook)).toMatchObject([{ status: 'cancelled', attempts: 0 }])
})

test('delivery#lanes: a hanging subscriber does not delay others', async () => {
  await using slow = await startReceiver()
  const prompt = fixture.receiver
  await using crowded = await startContractFixture({
    receiver: prompt,
    env: {
      WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${slow.port},127.0.0.1:${prompt.port}`,
      WEBHOOK_CONCURRENCY: '8',
      WEBHOOK_CONCURRENCY_PER_WEBHOOK: '2',
    },
  })
  const owner = (await crowded.createAccount()).document_id
  const release = Promise.withResolvers<void>()
  slow.behave({ kind: 'wait', until: release.promise })
  const hanging = await crowded.createWebhook({ account: owner }, ['contract.create'])
  await crowded.app.admin('PATCH', `/api/v3/webhook/webhook/${hanging.id}`, { url: `${slow.origin}/hang` })
  for (let change = 0; change < 10; change += 1) await crowded.makeChange(owner)
  const draining = crowded.app.settle()
  await slow.waitFor(2)
  const other = await crowded.createWebhook({ account: owner }, ['contract.update'])
  const contract = await crowded.makeChange(owner)
  const seen = prompt.requests.length
  await crowded.app.admin('PATCH', `/api/v3/contract/contract/${contract}`, { name: 'Renewed' })
  const more = crowded.app.settle()
  await prompt.waitFor(seen + 1)
  expect(crowded.received(other)).toHaveLength(1)
  expect(slow.requests).toHaveLength(2)
  release.resolve()
  await Promise.all([draining, more])
  expect(slow.requests).toHaveLength(11)
})

test('delivery#replay: a replay of an inactive or deleted webhook is refused with webhook_inactive', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await failTimes(1)
  const [row] = await fixture.readLedger(webhook)
  const replay = () => fixture.app.admin('POST', `/api/v3/webhook/dispatch/${row.document_id}/replay`)
  await activate(webhook, false)
  expectProblem(await replay(), 409, 'webhook_inactive')
  await activate(webhook, true)
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${webhook.id}`)
  expectProblem(await replay(), 409, 'webhook_inactive')
})
