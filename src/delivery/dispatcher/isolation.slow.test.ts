import { describe, expect, test } from 'vitest'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { LATE_AFTER_MS, LOOK_MS } from './lanes.ts'

/** A type of another service, which may be published. */
const HEALTHY_EVENT = 'order.update'

/**
 * A process with eight slots, all of which two webhooks hold that do not answer, four rows each waiting behind; and a webhook
 * that answers. `release` lets the first two answer.
 */
async function openCrowded() {
  const healthy = await startReceiver()
  const env = { WEBHOOK_CONCURRENCY: '8', WEBHOOK_CONCURRENCY_PER_WEBHOOK: '4' }
  const d = await openDelivery({ targets: [healthy], env })
  const answer = Promise.withResolvers<void>()
  d.receiver.behave({ kind: 'wait', until: answer.promise })
  const hanging = [await d.makeWebhook(), await d.makeWebhook()].map((item) => item.id)
  await d.call('POST', '/api/v3/webhook/event', { internal: HEALTHY_EVENT, account_scope: 'none' })
  const { id } = await d.makeWebhook({ url: `${healthy.origin}/hook`, events: [HEALTHY_EVENT] })
  const { router, dispatcher } = d.t.app
  await router.drain()
  const running = dispatcher.run()
  await waitFor('a dispatcher that claims', () => dispatcher.measureRoom().fastSlots === 8)
  await d.emit(8)
  await router.drain()
  await d.receiver.waitFor(8)
  expect(dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, lateGroups: [] })
  return {
    d,
    healthy,
    hanging,
    release: () => answer.resolve(),
    /** The rows of the webhook that answers: whether they were claimed as they were routed, and their statuses. */
    listHealthy: async () => {
      const rows = (await d.listRows()).filter((row) => row.webhook === id)
      return rows.map((row) => [row.last_attempt_at?.getTime() === row.created_at.getTime(), row.status])
    },
    [Symbol.asyncDispose]: async () => {
      answer.resolve()
      await dispatcher.stop()
      await running
      await d[Symbol.asyncDispose]()
      await healthy.close()
    },
  }
}

/** Passes so much time, with the looks of a process that does not stand still. */
function pass({ t }: DeliveryApp, ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += LOOK_MS) {
    t.clock.advance(LOOK_MS)
    t.app.dispatcher.measureRoom()
  }
}

describe('beside webhooks that hold every slot and do not answer', () => {
  test('rows of a webhook that answers are claimed as they are routed, once the others are late', async () => {
    await using c = await openCrowded()
    pass(c.d, LATE_AFTER_MS + LOOK_MS)
    const room = c.d.t.app.dispatcher.measureRoom()
    expect(room).toMatchObject({ fastSlots: 8, slowGroups: [] })
    expect([...room.lateGroups].sort()).toEqual([...c.hanging].sort())
    await c.d.emit(4, HEALTHY_EVENT)
    await c.d.t.app.router.drain()
    await c.healthy.waitFor(4)
    await waitFor('records', async () => (await c.listHealthy()).every(([, status]) => status === 'success'))
    expect(await c.listHealthy()).toEqual(Array.from({ length: 4 }, () => [true, 'success']))
    expect(c.d.receiver.requests).toHaveLength(8)
  })

  test('a publication to a webhook that answers is routed by the statement that records it', async () => {
    await using c = await openCrowded()
    pass(c.d, LATE_AFTER_MS + LOOK_MS)
    let published = 0
    // One that meets a claim of the dispatcher is left to the router, which does not run here.
    const publish = async () => {
      published += 1
      await c.d.call('POST', '/api/v3/webhook/publish', { event: HEALTHY_EVENT, id: `order-${published}` })
      return (await c.listHealthy()).length > 0
    }
    await waitFor('a publication that is routed at once', publish)
    await waitFor('records', async () => (await c.listHealthy()).every(([, status]) => status === 'success'))
    expect(await c.listHealthy()).toEqual([[true, 'success']])
    expect(c.healthy.requests).toHaveLength(1)
  })

  test('rows that came before that are posted before the others are slow, though nothing else happens', async () => {
    await using c = await openCrowded()
    await c.d.emit(2, HEALTHY_EVENT)
    await c.d.t.app.router.drain()
    expect(await c.listHealthy()).toEqual(Array.from({ length: 2 }, () => [false, 'pending']))
    let passedMs = 0
    const look = () => {
      // A few looks after the time at which the others are late, and long before they are slow.
      if (passedMs >= 3 * LATE_AFTER_MS) return c.healthy.requests.length === 2
      c.d.t.clock.advance(LOOK_MS)
      passedMs += LOOK_MS
      return false
    }
    await waitFor('posts', look)
  })

  test('the late ones are posted no more until they answer, and then at once', async () => {
    await using c = await openCrowded()
    await c.d.emit(4)
    await c.d.t.app.router.drain()
    pass(c.d, LATE_AFTER_MS + LOOK_MS)
    await c.d.emit(8, HEALTHY_EVENT)
    await c.d.t.app.router.drain()
    await c.healthy.waitFor(8)
    expect(c.d.receiver.requests).toHaveLength(8)
    c.release()
    await c.d.receiver.waitFor(16)
    const statuses = async () => new Set((await c.d.listRows()).map((row) => `${row.status} ${row.attempts}`))
    await waitFor('records', async () => ![...(await statuses())].some((status) => status.startsWith('pending')))
    expect(await statuses()).toEqual(new Set(['success 1']))
  })
})
