import { expect, test } from 'vitest'
import { openPull, type PullApp } from '../../../test/harness/delivery/pull-app.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'

/** Advances the clock by a second now and then until the answer is there. */
async function passUntil(p: PullApp, answer: Promise<unknown>): Promise<void> {
  let isDone = false
  void answer.finally(() => {
    isDone = true
  })
  await waitFor('the answer', () => {
    if (!isDone) p.t.clock.advance(1_000)
    return isDone
  })
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
  const beganAtMs = p.t.clock.now()
  const { answer } = await begin(p, id, { seconds: 4 })
  await passUntil(p, answer)
  expect(await answer).toMatchObject({ status: 200, body: { data: { deliveries: [] } } })
  expect(p.t.clock.now() - beganAtMs).toBeGreaterThanOrEqual(4_000)
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

test('it ends with a 401 when its portal session is ended, and with a 404 when its user leaves the account', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const path = `/api/v3/identity/account/${p.account}`
  const { body: link } = await p.call('POST', `${path}/portal-session`, { role: 'account-developer' })
  const token = link.data.url.split('#token=')[1]
  const opened = await p.t.anonymous('POST', '/api/v3/auth/portal-session/open', { token })
  const visit = await begin(p, id, { call: p.t.callAs(opened.body.data.token) })
  await p.call('DELETE', `${path}/portal-session/${opened.body.data.document_id}`)
  await passUntil(p, visit.answer)
  expect((await visit.answer).status).toBe(401)

  const { body: roles } = await p.call('GET', '/api/v3/identity/role?filters=name|eq|account-developer')
  const { call, userId } = await p.t.signInMember([p.account])
  const body = { user: userId, roles: [roles.data[0].document_id] }
  expect((await p.call('PATCH', `${path}/member`, body)).status).toBe(200)
  const stay = await begin(p, id, { call })
  await p.call('DELETE', `${path}/member`, { user: userId })
  await passUntil(p, stay.answer)
  expect((await stay.answer).status).toBeOneOf([403, 404])
  expect(await p.listRows()).toEqual([])
})

test('it holds no connection of the database', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  const waiting = await Promise.all(Array.from({ length: 5 }, () => begin(p, id)))
  const { pool } = p.t.database
  await waitFor('the end of the looks', () => pool.idleCount === pool.totalCount && pool.waitingCount === 0)
  expect(p.t.app.pulls.waits.count()).toBe(5)
  p.t.app.pulls.waits.stop()
  await Promise.all(waiting.map(({ answer }) => answer))
})
