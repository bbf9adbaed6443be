import { describe, expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { passRetrySchedule } from '../../../test/harness/delivery/retry-schedule.ts'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { verifyTimestamped } from '../../outbound/signature.ts'

const FAILING = { kind: 'status', status: 500 } as const
const HEALTHY = { kind: 'status', status: 200 } as const

describe('the schedule', () => {
  test('signs each of the five POSTs afresh, with its number and the one id, and keeps when each of them ended', async () => {
    await using d = await openDelivery()
    const { secret } = await d.makeWebhook()
    d.receiver.behave(FAILING)
    await d.emit()
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ last_attempt_at: new Date(d.t.clock.now()) }])
    await passRetrySchedule(d.t)
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'exhausted', attempts: 5, ended_at: new Date(d.t.clock.now()) })
    expect(await d.listOutcomes(row!.document_id)).toEqual([500, 500, 500, 500, 500])
    const signedAtSeconds = new Set<number>()
    for (const [index, request] of d.receiver.requests.entries()) {
      const header = request.headers['x-service-signature']
      const nowSeconds = Number(request.headers['webhook-timestamp'])
      expect(verifyTimestamped({ secret, header, body: request.body, nowSeconds })).toMatchObject({ ok: true })
      signedAtSeconds.add(nowSeconds)
      expect(JSON.parse(request.body.toString())).toMatchObject({ id: row!.event_id, attempt: index + 1 })
      expect(request.headers).toMatchObject({
        'webhook-id': row!.event_id,
        'x-service-attempt': String(index + 1),
        'x-service-delivery': row!.document_id,
      })
    }
    expect(signedAtSeconds.size).toBe(5)
  })

  test('stops at the first success, and an answer of 4xx is made again like any other failure', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'status', status: 404 }, { kind: 'reset-before-headers' }, { kind: 'no-content' })
    await d.emit()
    await d.t.settle()
    await d.pass(60_000)
    await d.pass(300_000)
    await d.pass(7_200_000)
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'success', attempts: 3, last_status_code: 204, last_error: null })
    expect(await d.listOutcomes(row!.document_id)).toEqual([404, 'reset', 204])
    expect(d.receiver.requests).toHaveLength(3)
  })

  test('ends at a redirect, which is never followed: the second host hears nothing', async () => {
    await using elsewhere = await startReceiver()
    await using d = await openDelivery({ targets: [elsewhere] })
    await d.makeWebhook()
    for (const status of [301, 302, 307, 308]) {
      d.receiver.behaveNext({ kind: 'redirect', location: `${elsewhere.origin}/next`, status })
      await d.emit()
      await d.t.settle()
    }
    await d.pass(86_400_000)
    const rows = await d.listRows()
    expect(rows.map((row) => [row.status, row.attempts, row.next_attempt_at])).toEqual(
      Array.from({ length: 4 }, () => ['failed', 1, null]),
    )
    expect(d.receiver.requests).toHaveLength(4)
    expect(elsewhere.connectionCount()).toBe(0)
  })

  test('serves one webhook while another fails: each has its own row of the same event', async () => {
    await using other = await startReceiver()
    await using d = await openDelivery({ targets: [other] })
    const failing = await d.makeWebhook()
    const healthy = await d.makeWebhook({ url: `${other.origin}/hook` })
    d.receiver.behave({ kind: 'close-before-headers' })
    await d.emit()
    await d.t.settle()
    const rows = await d.listRows()
    expect(new Map(rows.map((row) => [row.webhook, row.status]))).toEqual(
      new Map<string, string>([
        [failing.id, 'retrying'],
        [healthy.id, 'success'],
      ]),
    )
    expect(new Set(rows.map((row) => row.event_id)).size).toBe(1)
  })
})

describe('what is read at send time', () => {
  test('retries a 401 on the schedule, signed with the secret that was rotated meanwhile', async () => {
    await using d = await openDelivery()
    const { id, secret } = await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'status', status: 401 })
    await d.emit()
    await d.t.settle()
    const rotated = await d.call('POST', `/api/v3/webhook/webhook/${id}/rotate-secret`)
    expect((await d.listRows())[0]).toMatchObject({ status: 'retrying', last_status_code: 401 })
    await d.pass(60_000)
    expect((await d.listRows())[0]).toMatchObject({ status: 'success', attempts: 2 })
    const request = d.receiver.requests[1]!
    const header = request.headers['x-service-signature']
    const nowSeconds = Math.floor(d.t.clock.now() / 1000)
    const verify = (with_: string) => verifyTimestamped({ secret: with_, header, body: request.body, nowSeconds })
    expect(verify(rotated.body.data.secret)).toMatchObject({ ok: true })
    expect(verify(secret)).toEqual({ ok: false, fault: 'mismatch' })
  })

  test('sends what waits to the URL that was corrected meanwhile', async () => {
    await using corrected = await startReceiver()
    await using d = await openDelivery({ targets: [corrected] })
    const { id } = await d.makeWebhook()
    d.receiver.behave(FAILING)
    await d.emit()
    await d.t.settle()
    await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { url: `${corrected.origin}/new` })
    await d.pass(60_000)
    expect((await d.listRows())[0]).toMatchObject({ status: 'success', attempts: 2 })
    expect(d.receiver.requests).toHaveLength(1)
    expect(corrected.requests.map((request) => request.path)).toEqual(['/new'])
  })

  test('posts nothing for a webhook without a secret, and goes on when it has one', async () => {
    await using d = await openDelivery()
    const { id } = await d.makeWebhook()
    await d.t.database.db.updateTable('webhook').set({ secret_encrypted: null }).execute()
    await d.emit()
    await d.t.settle()
    expect((await d.listRows())[0]).toMatchObject({ status: 'retrying', attempts: 1, last_error: 'secret_missing' })
    expect(d.receiver.connectionCount()).toBe(0)
    await d.call('POST', `/api/v3/webhook/webhook/${id}/rotate-secret`)
    await d.pass(60_000)
    expect((await d.listRows())[0]).toMatchObject({ status: 'success', attempts: 2 })
  })

  test('posts nothing when the stored secret does not open, and does not stop for it', async () => {
    await using d = await openDelivery()
    const broken = await d.makeWebhook()
    await d.t.database.db.updateTable('webhook').set({ secret_encrypted: 'v1.deadbeef.AAAA.BBBB' }).execute()
    const sound = await d.makeWebhook()
    await d.emit()
    await d.t.settle()
    const rows = await d.listRows()
    expect(rows.find((row) => row.webhook === broken.id)).toMatchObject({
      status: 'retrying',
      last_error: 'secret_unreadable',
    })
    expect(rows.find((row) => row.webhook === sound.id)).toMatchObject({ status: 'success' })
    expect(d.receiver.requests).toHaveLength(1)
  })

  test('posts nothing to an address that is no longer allowed, and names the class only', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.t.database.db.updateTable('webhook').set({ url: 'http://169.254.169.254/latest/meta-data' }).execute()
    await d.emit()
    await d.t.settle()
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'retrying', last_error: 'blocked_address', last_status_code: null })
    expect(JSON.stringify(await d.call('GET', `/api/v3/webhook/dispatch/${row!.document_id}`))).not.toContain('169.254')
  })
})

describe('webhooks that rest, go and are disabled', () => {
  test('lets waiting rows rest while their webhook is inactive, writes none, and goes on when it is active', async () => {
    await using d = await openDelivery()
    const { id } = await d.makeWebhook()
    d.receiver.behaveNext(FAILING)
    await d.emit()
    await d.t.settle()
    await d.setActive(id, false)
    await d.emit(3)
    await d.pass(86_400_000)
    expect(d.receiver.requests).toHaveLength(1)
    expect(await d.listRows()).toMatchObject([{ status: 'retrying', attempts: 1 }])
    await d.setActive(id, true)
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ status: 'success', attempts: 2 }])
    expect(d.receiver.requests).toHaveLength(2)
  })

  test('cancels what waits for a webhook that is deleted, and keeps the ledger', async () => {
    await using d = await openDelivery()
    const { id } = await d.makeWebhook()
    d.receiver.behaveNext(HEALTHY)
    d.receiver.behave(FAILING)
    await d.emit(2)
    await d.t.settle()
    await d.call('DELETE', `/api/v3/webhook/webhook/${id}`)
    await d.emit()
    await d.pass(86_400_000)
    const rows = await d.listRows()
    expect(rows.map((row) => row.status).sort()).toEqual(['cancelled', 'success'])
    expect(rows.find((row) => row.status === 'cancelled')).toMatchObject({ attempts: 1, next_attempt_at: null })
    expect(d.receiver.requests).toHaveLength(2)
  })

  test('ends a POST that was in flight when its webhook was deleted: as success, or as cancelled, never as retrying', async () => {
    await using d = await openDelivery()
    const answer = Promise.withResolvers<void>()
    const { id } = await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'wait', until: answer.promise, status: 500 }, { kind: 'wait', until: answer.promise })
    await d.emit(2)
    const settled = d.t.settle()
    await d.receiver.waitFor(2)
    await d.call('DELETE', `/api/v3/webhook/webhook/${id}`)
    answer.resolve()
    await settled
    expect((await d.listRows()).map((row) => row.status).sort()).toEqual(['cancelled', 'success'])
  })

  test('leaves nothing of a webhook that was purged while a POST was in flight', async () => {
    await using d = await openDelivery()
    const answer = Promise.withResolvers<void>()
    const { id } = await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'wait', until: answer.promise })
    await d.emit()
    const settled = d.t.settle()
    await d.receiver.waitFor(1)
    await d.call('DELETE', `/api/v3/webhook/webhook/${id}/purge`)
    answer.resolve()
    await settled
    expect(await d.listRows()).toEqual([])
  })

  test('tells other global webhooks of a webhook that fails and is disabled, and never the one it is about', async () => {
    await using other = await startReceiver()
    await using d = await openDelivery({ targets: [other] })
    const notices = ['webhook.failing', 'webhook.auto-disable', 'webhook.recovered']
    const failing = await d.makeWebhook({ events: ['contract.create', ...notices] })
    await d.makeWebhook({ url: `${other.origin}/watch`, events: notices })
    d.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
    await d.emit(20)
    await d.t.settle()
    expect(await d.readWebhook(failing.id)).toMatchObject({ is_actived: false, consecutive_failures: 20 })
    expect(other.requests.map((request) => request.headers['x-service-event'])).toEqual([
      'webhook.failing',
      'webhook.failing',
      'webhook.auto-disable',
    ])
    expect(d.receiver.requests).toHaveLength(20)
  })

  test('sets the failure count to 0 on a success, of a test too, and never counts a failed test', async () => {
    await using d = await openDelivery()
    const { id } = await d.makeWebhook()
    await d.t.database.db.updateTable('webhook').set({ consecutive_failures: 19 }).execute()
    d.receiver.behaveNext({ kind: 'redirect', location: '/x' })
    await d.sendTest(id)
    await d.t.settle()
    expect(await d.readWebhook(id)).toMatchObject({ is_actived: true, consecutive_failures: 19 })
    await d.sendTest(id)
    await d.t.settle()
    expect(await d.readWebhook(id)).toMatchObject({ consecutive_failures: 0 })
  })

  test('delivers the test of an inactive webhook, with its retries, and nothing else of it', async () => {
    await using d = await openDelivery()
    const { id } = await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await d.setActive(id, false)
    d.receiver.behaveNext(FAILING)
    const test = await d.sendTest(id)
    await d.t.settle()
    await d.pass(60_000)
    expect(d.receiver.requests.map((request) => request.headers['x-service-event'])).toEqual([
      'webhook.test',
      'webhook.test',
    ])
    const rows = await d.listRows()
    expect(rows.find((row) => row.document_id === test)).toMatchObject({
      status: 'success',
      attempts: 2,
      is_test: true,
    })
    expect(rows.find((row) => row.document_id !== test)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('posts nothing while ENABLE_API_EVENT_QUEUE is false, what was recorded before neither', async () => {
    await using d = await openDelivery({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    await d.makeWebhook()
    await d.emit()
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ status: 'pending', attempts: 0 }])
    expect(d.receiver.connectionCount()).toBe(0)
  })
})

describe('rows that are claimed as they are routed', () => {
  test('are posted at once by a running dispatcher, within its cap, and the rest when there is room', async () => {
    await using d = await openDelivery({ env: { WEBHOOK_CONCURRENCY: '4', WEBHOOK_CONCURRENCY_PER_WEBHOOK: '2' } })
    await d.makeWebhook()
    const { router, dispatcher } = d.t.app
    await router.drain()
    const answer = Promise.withResolvers<void>()
    d.receiver.behave({ kind: 'wait', until: answer.promise })
    const running = dispatcher.run()
    await waitFor('a dispatcher that claims', () => dispatcher.measureRoom().fastSlots === 4)
    await d.emit(3)
    expect(await router.drain()).toEqual({ events: 3, dispatches: 3 })
    await d.receiver.waitFor(2)
    expect((await d.listRows()).map((row) => [row.attempts, row.fence, row.next_attempt_at === null]).sort()).toEqual([
      [0, 0, false],
      [1, 1, true],
      [1, 1, true],
    ])
    expect(dispatcher.inFlight()).toBe(2)
    answer.resolve()
    await d.receiver.waitFor(3)
    await dispatcher.stop()
    await running
    expect((await d.listRows()).map((row) => [row.status, row.attempts])).toEqual(
      Array.from({ length: 3 }, () => ['success', 1]),
    )
  })

  test('are none while ENABLE_API_EVENT_QUEUE is false, though the dispatcher runs', async () => {
    await using d = await openDelivery({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    await d.makeWebhook()
    const { router, dispatcher } = d.t.app
    const running = dispatcher.run()
    await waitFor('a worker', async () => {
      const rows = await d.t.database.db.selectFrom('delivery_worker').selectAll().execute()
      return rows.length === 1
    })
    await d.emit()
    await router.drain()
    expect(dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, slowSlots: 0 })
    await dispatcher.stop()
    await running
    expect(await d.listRows()).toMatchObject([{ status: 'pending', attempts: 0, lease_owner: null }])
    expect(d.receiver.connectionCount()).toBe(0)
  })
})
