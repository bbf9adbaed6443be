import { expect, test } from 'vitest'
import { openPull, type PullApp } from '../../../test/harness/delivery/pull-app.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'

/** Advances the clock by whole seconds until the answer is there. Returns their number. */
async function passUntil(p: PullApp, answer: Promise<unknown>): Promise<number> {
  let isDone = false
  void answer.finally(() => {
    isDone = true
  })
  for (let seconds = 0; ; seconds += 1) {
    if (isDone) return seconds
    p.t.clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Starts a pull, and waits until it waits. */
async function begin(p: PullApp, webhook: string, { seconds = 30, call = p.call } = {}) {
  const before = p.t.app.pulls.waits.count()
  const answer = p.pull(webhook, { wait_seconds: seconds }, call)
  await waitFor('the wait', () => p.t.app.pulls.waits.count() > before)
  return { answer }
}

test('a pull that waits is answered by the notification of a row, which names its webhook', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const { answer } = await begin(p, id)
  await p.emit()
  p.t.app.pulls.waits.notify(id)
  expect((await answer).body.data.deliveries).toHaveLength(1)
  expect(p.t.app.pulls.waits.count()).toBe(0)
})

test('without a notification it sees the row within a second, and a retry when it is due', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const { answer } = await begin(p, id)
  await p.emit()
  await passUntil(p, answer)
  expect((await answer).body.data.deliveries).toMatchObject([{ attempt: 1 }])
})

test('it is answered with nothing when its time is over', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const { answer } = await begin(p, id, { seconds: 2 })
  await passUntil(p, answer)
  expect(await answer).toMatchObject({ status: 200, body: { data: { deliveries: [] } } })
})

test('it ends with a 401 when its key is revoked, and leases nothing', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const made = await p.call('POST', '/api/v3/identity/api-key', { name: 'puller', permissions: ['webhook:pull'] })
  const { answer } = await begin(p, id, { call: p.t.callAs(made.body.data.key) })
  await p.call('DELETE', `/api/v3/identity/api-key/${made.body.data.document_id}`)
  await p.emit()
  p.t.app.pulls.waits.notify(id)
  expect((await answer).status).toBe(401)
  expect(await p.listRows()).toMatchObject([{ attempts: 0 }])
})

test('it ends with a 404 when its webhook is deleted, and with a 409 when it is switched off', async () => {
  await using p = await openPull()
  const [deleted, inactive] = [await p.makeWebhook(), await p.makeWebhook()]
  const first = await begin(p, deleted.id)
  await p.call('DELETE', `/api/v3/webhook/webhook/${deleted.id}`)
  await passUntil(p, first.answer)
  expect((await first.answer).status).toBe(404)
  const second = await begin(p, inactive.id)
  await p.call('PATCH', `/api/v3/webhook/webhook/${inactive.id}/active`, { is_actived: false })
  await passUntil(p, second.answer)
  expect(await second.answer).toMatchObject({ status: 409, body: { code: 'webhook_inactive' } })
})

test('it ends with nothing when the process stops', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const { answer } = await begin(p, id)
  p.t.app.pulls.waits.stop()
  expect(await answer).toMatchObject({ status: 200, body: { data: { deliveries: [] } } })
})

test('of several that wait for one row one gets it, and the others wait on', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const waiting = [
    await begin(p, id, { seconds: 3 }),
    await begin(p, id, { seconds: 3 }),
    await begin(p, id, { seconds: 3 }),
  ]
  await p.emit()
  p.t.app.pulls.waits.notify(id)
  const all = Promise.all(waiting.map(({ answer }) => answer))
  await passUntil(p, all)
  const counts = (await all).map(({ body }) => body.data.deliveries.length)
  expect(counts.sort()).toEqual([0, 0, 1])
})

test('more than ten of one webhook are refused with a remedy, while a pull without a wait is answered', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const waiting: { answer: ReturnType<PullApp['pull']> }[] = []
  for (let index = 0; index < 10; index += 1) waiting.push(await begin(p, id))
  const refused = await p.pull(id, { wait_seconds: 1 })
  expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '5' }, body: { code: 'rate_limited' } })
  expect((await p.pull(id)).status).toBe(200)
  p.t.app.pulls.waits.stop()
  await Promise.all(waiting.map(({ answer }) => answer))
})
