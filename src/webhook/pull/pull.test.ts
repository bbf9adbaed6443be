import { describe, expect, test } from 'vitest'
import { checkDelivery } from '../../../packages/webhooks/src/verify-delivery.ts'
import { openPull, openSharedPull } from '../../../test/harness/delivery/pull-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { findNextDueAt } from '../delivery/claim.store.ts'
import { RETRY_DELAYS_MS } from '../delivery/outcome.ts'

const MINUTE_MS = 60_000
const UNKNOWN_ID = '01990000-0000-7000-8000-000000000000'

const shared = await openForFile(openSharedPull())

describe('a pull', () => {
  test('leases due deliveries, signed as a POST is, and an acknowledgement ends them', async () => {
    const p = await shared.begin()
    const { id, secret } = await p.makeWebhook()
    await p.emit(2)
    const [first, second, ...rest] = await p.take(id)
    expect(rest).toEqual([])
    const { headers, body } = first!
    expect(await checkDelivery({ headers, body, secret, now: () => p.t.clock.now() })).toMatchObject({ ok: true })
    expect(JSON.parse(body)).toMatchObject({ type: 'contract.create', attempt: 1, data: { account: p.account } })
    expect(headers).toMatchObject({ 'x-service-delivery': first!.id, 'x-service-attempt': '1' })
    expect(Date.parse(first!.lease_until)).toBe(p.t.clock.now() + MINUTE_MS)
    expect(await p.listRows()).toMatchObject([
      { status: 'pending', attempts: 1, next_attempt_at: null },
      { status: 'pending', attempts: 1, next_attempt_at: null },
    ])
    p.t.clock.advance(2_000)
    expect(await p.settle(id, [first!.receipt])).toEqual(['acknowledged'])
    expect(await p.listRows()).toMatchObject([
      { document_id: first!.id, status: 'success', attempts: 1, last_duration_ms: 2_000, last_status_code: null },
      { document_id: second!.id, status: 'pending' },
    ])
    const { body: read } = await p.call('GET', `/api/v3/webhook/dispatch/${first!.id}`)
    expect(read.data.attempts_log).toMatchObject([
      { attempt: 1, trigger: 'schedule', error_class: null, status_code: null },
    ])
  })

  test('answers up to max, the longest due first, and nothing twice within a lease', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(3)
    p.t.clock.advance(1)
    await p.emit(1)
    const taken = await p.take(id, { max: 3 })
    expect(taken).toHaveLength(3)
    const [last, ...rest] = await p.take(id, { max: 100 })
    expect(rest).toEqual([])
    expect(taken.map((item) => item.id)).not.toContain(last!.id)
    expect(await p.take(id)).toEqual([])
  })

  test('is never claimed by a dispatcher, not even as a test of an inactive webhook', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(2)
    expect((await p.call('POST', `/api/v3/webhook/webhook/${id}/test`)).status).toBe(202)
    await p.call('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: false })
    expect(await p.t.app.dispatcher.drain()).toBe(0)
    expect(await p.t.database.db.selectFrom('webhook_queue').selectAll().execute()).toEqual([])
    expect(await findNextDueAt(p.t.database.db)).toBeNull()
    await p.call('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: true })
    expect(await p.t.app.dispatcher.drain()).toBe(0)
    expect(await p.take(id)).toHaveLength(3)
  })

  test.each([
    ['an inactive webhook', 'webhook_inactive'],
    ['a webhook of the mode push', 'conflict'],
  ])('of %s is refused', async (what, code) => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const push = { url: 'https://hooks.example.com/in', account: p.account }
    const other = (await p.call('POST', '/api/v3/webhook/webhook', push)).body.data.document_id
    await p.call('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: false })
    const asked = code === 'conflict' ? other : id
    expect(await p.pull(asked), what).toMatchObject({ status: 409, body: { code } })
    expect(await p.listRows()).toMatchObject([{ attempts: 0 }])
  })

  test.each([
    ['a max of 0', { max: 0 }],
    ['a max of 101', { max: 101 }],
    ['a wait of 31 seconds', { wait_seconds: 31 }],
    ['a negative wait', { wait_seconds: -1 }],
    ['a lease of 9 seconds', { lease_seconds: 9 }],
    ['a lease of 601 seconds', { lease_seconds: 601 }],
    ['an unknown member', { min: 1 }],
    ['a text for a number', { max: '1' }],
  ])('with %s is a 422', async (_what, body) => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    expect(await p.pull(id, body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
  })

  test('of an unknown webhook is a 404, before an invalid body, and without a token a 401', async () => {
    const p = await shared.begin()
    expect((await p.pull(UNKNOWN_ID)).status).toBe(404)
    expect((await p.pull(UNKNOWN_ID, { max: 0 })).status).toBe(404)
    expect((await p.pull(UNKNOWN_ID, {}, p.t.anonymous)).status).toBe(401)
    expect((await p.ack(UNKNOWN_ID, [`${UNKNOWN_ID}:1`])).status).toBe(404)
  })
})

test('the backlog has the number of due rows and since when the first is due, without those under a lease', async () => {
  const p = await shared.begin()
  const { id } = await p.makeWebhook()
  const read = (webhook: string) => p.call('GET', `/api/v3/webhook/webhook/${webhook}/backlog`)
  expect((await read(id)).body.data).toEqual({ waiting: 0, oldest_at: null })
  // What waits elsewhere is not counted.
  await p.makeWebhook()
  const firstAt = new Date(p.t.clock.now()).toISOString()
  await p.emit(2)
  p.t.clock.advance(5_000)
  await p.emit(2)
  expect((await read(id)).body.data).toEqual({ waiting: 4, oldest_at: firstAt })
  await p.take(id, { max: 3 })
  const secondAt = new Date(p.t.clock.now()).toISOString()
  expect((await read(id)).body.data).toEqual({ waiting: 1, oldest_at: secondAt })
  const push = { url: 'https://hooks.example.com/in', account: p.account }
  const other = (await p.call('POST', '/api/v3/webhook/webhook', push)).body.data.document_id
  expect(await read(other)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  expect((await read(UNKNOWN_ID)).status).toBe(404)
})

describe('a webhook of the mode pull', () => {
  test.each([
    ['a URL', { mode: 'pull', url: 'https://hooks.example.com/in' }, 'url'],
    ['headers', { mode: 'pull', headers: { authorization: 'Bearer x' } }, 'headers'],
    ['a limit a second', { mode: 'pull', max_per_second: 5 }, 'max_per_second'],
    ['no URL for the mode push', { mode: 'push' }, 'url'],
    ['neither mode nor URL', {}, 'url'],
    ['an unknown mode', { mode: 'poll' }, 'mode'],
    ['an empty URL', { mode: 'push', url: '' }, 'url'],
  ])('is not made with %s', async (_what, body, path) => {
    const p = await shared.begin()
    const answer = await p.call('POST', '/api/v3/webhook/webhook', { account: p.account, ...body })
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path }] } })
  })

  test('has no URL, keeps its mode, and changes in all else', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    const change = (body: object) => p.call('PATCH', `/api/v3/webhook/webhook/${id}`, body)
    expect((await change({ url: 'https://hooks.example.com/in' })).body.errors).toMatchObject([{ path: 'url' }])
    expect((await change({ headers: { 'x-key': 'x' } })).body.errors).toMatchObject([{ path: 'headers' }])
    expect((await change({ max_per_second: 5 })).body.errors).toMatchObject([{ path: 'max_per_second' }])
    expect((await change({ mode: 'push' })).status).toBe(422)
    expect((await change({ name: 'Fetched', headers: {} })).body.data).toMatchObject({
      ...{ mode: 'pull', url: '', name: 'Fetched', header_names: [] },
    })
    await p.emit()
    const [first] = await p.take(id)
    await p.call('POST', `/api/v3/webhook/webhook/${id}/rotate-secret`)
    await p.emit()
    expect(await p.take(id)).toHaveLength(1)
    expect(await p.settle(id, [first!.receipt])).toEqual(['acknowledged'])
  })

  test('is pulled within the accounts of the caller, by a key with webhook:pull alone, and by no portal session of another', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const key = async (permissions: string[], account: string) => {
      const made = await p.call('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions, account })
      return p.t.callAs(made.body.data.key)
    }
    const other = (await p.call('POST', '/api/v3/identity/account', { name: 'Other' })).body.data.document_id
    const narrow = await key(['webhook:pull'], p.account)
    const stranger = await key(['webhook:*'], other)
    expect((await p.pull(id, {}, stranger)).status).toBe(404)
    expect((await p.pull(id, {}, await key(['webhook:find-one'], p.account))).status).toBe(403)
    const { body } = await p.pull(id, {}, narrow)
    const { receipt } = body.data.deliveries[0]
    expect((await p.ack(id, [receipt], stranger)).status).toBe(404)
    expect((await p.ack(id, [receipt], narrow)).body.data.receipts).toEqual([{ receipt, status: 'acknowledged' }])
    expect((await narrow('GET', `/api/v3/webhook/webhook/${id}`)).status).toBe(403)
  })

  test('with a secret that no key opens leases nothing, and says what to do', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    await p.t.database.pool.query(`update webhook set secret_encrypted = 'v1.unknown.AAAA' where document_id = $1`, [
      id,
    ])
    expect(await p.pull(id)).toMatchObject({ status: 409, body: { detail: expect.stringContaining('Rotate') } })
    expect(await p.listRows()).toMatchObject([{ attempts: 0 }])
  })

  test('is refused while the event queue is off', async () => {
    await using p = await openPull({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    const { id } = await p.makeWebhook()
    expect(await p.pull(id)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test('pulls neither leave an event nor an audit entry', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const count = async () =>
      (
        await p.t.database.pool.query(
          'select (select count(*) from audit_log) + (select count(*) from event_occurrence) as n',
        )
      ).rows[0].n
    const before = await count()
    const [{ receipt } = { receipt: '' }] = await p.take(id)
    await p.settle(id, [receipt])
    await p.pull(id)
    expect(await count()).toBe(before)
  })
})

describe('a lease that ends', () => {
  test('is a failed attempt at its end, and the next one is due by the schedule', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const [{ receipt } = { receipt: '' }] = await p.take(id, { lease_seconds: 10 })
    await p.pass(9_999)
    expect(await p.listRows()).toMatchObject([{ status: 'pending', next_attempt_at: null }])
    // Later than the end, as the round of another second: the schedule counts from the end.
    await p.pass(3_001)
    const dueAt = new Date(p.t.clock.now() - 3_000 + RETRY_DELAYS_MS[0])
    expect(await p.listRows()).toMatchObject([
      { status: 'retrying', attempts: 1, last_error: 'lease_expired', next_attempt_at: dueAt },
    ])
    expect(await p.settle(id, [receipt])).toEqual(['expired'])
    await p.pass(RETRY_DELAYS_MS[0] - 3_001)
    expect(await p.take(id)).toEqual([])
    await p.pass(1)
    expect(await p.take(id)).toMatchObject([{ attempt: 2 }])
  })

  test('cannot be acknowledged from its last millisecond on, also before it is recorded', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(2)
    const [first, second] = await p.take(id, { lease_seconds: 10 })
    p.t.clock.advance(9_999)
    expect(await p.settle(id, [first!.receipt])).toEqual(['acknowledged'])
    p.t.clock.advance(1)
    expect(await p.settle(id, [second!.receipt])).toEqual(['expired'])
    expect(await p.listRows()).toMatchObject([{ status: 'success' }, { status: 'pending', attempts: 1 }])
  })

  test('is ended with all others that ran out, however many', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(501)
    for (let pulls = 0; pulls < 6; pulls += 1) await p.take(id, { max: 100 })
    await p.pass(MINUTE_MS)
    const { rows } = await p.t.database.pool.query(
      'select status, count(*)::int as n from webhook_dispatch_open group by 1',
    )
    expect(rows).toEqual([{ status: 'retrying', n: 501 }])
  })

  test('ends the delivery as exhausted with the fifth, which counts for the webhook', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    for (const delayMs of [...RETRY_DELAYS_MS, 0]) {
      expect(await p.take(id)).toHaveLength(1)
      await p.pass(MINUTE_MS)
      await p.pass(delayMs)
    }
    expect(await p.take(id)).toEqual([])
    expect(await p.listRows()).toMatchObject([{ status: 'exhausted', attempts: 5, last_error: 'lease_expired' }])
    expect((await p.call('GET', `/api/v3/webhook/webhook/${id}`)).body.data.consecutive_failures).toBe(1)
    await p.emit()
    const [next] = await p.take(id)
    expect(await p.settle(id, [next!.receipt])).toEqual(['acknowledged'])
    expect((await p.call('GET', `/api/v3/webhook/webhook/${id}`)).body.data.consecutive_failures).toBe(0)
  })

  test('disables a webhook with the 20th failed delivery; one that does not pull stays active', async () => {
    const p = await shared.begin()
    const [failing, silent] = [await p.makeWebhook(), await p.makeWebhook()]
    await p.emit(20)
    for (const delayMs of [...RETRY_DELAYS_MS, 0]) {
      await p.take(failing.id, { max: 100 })
      await p.pass(MINUTE_MS)
      await p.pass(delayMs)
    }
    const read = async (id: string) => (await p.call('GET', `/api/v3/webhook/webhook/${id}`)).body.data
    expect(await read(failing.id)).toMatchObject({ is_actived: false, disabled_reason: 'consecutive-failures' })
    expect(await read(silent.id)).toMatchObject({ is_actived: true, consecutive_failures: 0 })
  })

  test('gives a delivery again whose process was killed after the lease was committed', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const before = await p.t.database.pool.query('select count(*)::int as rows from delivery_worker')
    // The answer of this one is lost.
    await p.take(id)
    await p.pass(MINUTE_MS + RETRY_DELAYS_MS[0])
    expect(await p.take(id)).toMatchObject([{ attempt: 2 }])
    // A lease of a subscriber is none of a worker: no process has to be missed first.
    expect(await p.t.database.pool.query('select count(*)::int as rows from delivery_worker')).toMatchObject({
      rows: before.rows,
    })
  })
})

test('the time that a subscriber takes is not that of a POST in the metrics', async () => {
  await using p = await openPull()
  const { id } = await p.makeWebhook()
  await p.emit(2)
  const [first] = await p.take(id)
  await p.settle(id, [first!.receipt])
  await p.pass(MINUTE_MS)
  const text = String((await p.t.scrape()).body)
  expect(text).toMatch(/^webhook_out_attempt_duration_seconds_count 0$/m)
  expect(text).toMatch(/^webhook_out_attempts_total\{error="lease_expired",trigger="schedule"\} 1$/m)
})

describe('an acknowledgement', () => {
  test('that is repeated answers the same, and changes nothing', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const [{ receipt } = { receipt: '' }] = await p.take(id)
    expect(await p.settle(id, [receipt])).toEqual(['acknowledged'])
    const rows = await p.listRows()
    p.t.clock.advance(1_000)
    expect(await p.settle(id, [receipt])).toEqual(['acknowledged'])
    expect(await p.listRows()).toEqual(rows)
  })

  test('of a delivery of another webhook is not found, and leaves it alone', async () => {
    const p = await shared.begin()
    const [own, other] = [await p.makeWebhook(), await p.makeWebhook()]
    await p.emit()
    const [{ receipt } = { receipt: '' }] = await p.take(other.id)
    expect(await p.settle(own.id, [receipt, `${UNKNOWN_ID}:1`])).toEqual(['not_found', 'not_found'])
    expect(await p.settle(other.id, [receipt])).toEqual(['acknowledged'])
    expect(await p.settle(own.id, [receipt])).toEqual(['not_found'])
  })

  test('by the receipt of an earlier attempt is expired while the next one runs', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const [first] = await p.take(id)
    await p.pass(MINUTE_MS + RETRY_DELAYS_MS[0])
    const [second] = await p.take(id)
    expect(await p.settle(id, [first!.receipt])).toEqual(['expired'])
    expect(await p.settle(id, [first!.receipt, second!.receipt])).toEqual(['expired', 'acknowledged'])
    expect(await p.listRows()).toMatchObject([{ status: 'success', attempts: 2 }])
  })

  test('is taken while the webhook is inactive, and refused with a 404 once it is deleted', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(2)
    const [first, second] = await p.take(id)
    await p.call('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: false })
    expect(await p.settle(id, [first!.receipt])).toEqual(['acknowledged'])
    await p.call('DELETE', `/api/v3/webhook/webhook/${id}`)
    expect((await p.ack(id, [second!.receipt])).status).toBe(404)
    await p.pass(MINUTE_MS)
    expect(await p.listRows()).toMatchObject([{ status: 'success' }, { status: 'cancelled' }])
  })

  test.each([
    ['no receipt', []],
    ['101 receipts', Array.from({ length: 101 }, (_, index) => `${UNKNOWN_ID}:${index + 1}`)],
    ['a receipt twice', [`${UNKNOWN_ID}:1`, `${UNKNOWN_ID}:1`]],
    ['a receipt without a fence', [UNKNOWN_ID]],
    ['a fence of 0', [`${UNKNOWN_ID}:0`]],
    ['a fence beyond an integer', [`${UNKNOWN_ID}:1234567890`]],
    ['a NUL', [`${UNKNOWN_ID}:1\u0000`]],
    ['a lone surrogate', ['\ud800']],
    ['a line break behind it', [`${UNKNOWN_ID}:1\n`]],
  ])('with %s is a 422', async (_what, receipts) => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    expect((await p.ack(id, receipts)).status).toBeOneOf([400, 422])
  })
})

describe('rows that are not pulled', () => {
  test('wait without failing, and end after seven days, which a replay begins again', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const [row] = await p.listRows()
    await p.pass(7 * 86_400_000 - 1)
    await p.t.app.maintenance.sweep()
    expect(await p.listRows()).toMatchObject([{ status: 'pending', attempts: 0 }])
    await p.pass(1)
    await p.t.app.maintenance.sweep()
    expect(await p.listRows()).toMatchObject([{ status: 'cancelled', attempts: 0 }])
    expect((await p.call('GET', `/api/v3/webhook/webhook/${id}`)).body.data.consecutive_failures).toBe(0)
    expect((await p.call('POST', `/api/v3/webhook/dispatch/${row!.document_id}/replay`)).status).toBe(202)
    expect(await p.t.app.dispatcher.drain()).toBe(0)
    await p.t.app.maintenance.sweep()
    const [replayed] = await p.take(id)
    expect(replayed).toMatchObject({ id: row!.document_id, attempt: 1 })
    expect(await p.settle(id, [replayed!.receipt])).toEqual(['acknowledged'])
  })

  test('a replay of a row under a lease is refused, and of a waiting one makes it due', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit()
    const [row] = await p.take(id)
    const replay = () => p.call('POST', `/api/v3/webhook/dispatch/${row!.id}/replay`, { confirm_duplicate: true })
    expect(await replay()).toMatchObject({ status: 409, body: { code: 'conflict' } })
    await p.pass(MINUTE_MS)
    expect((await replay()).status).toBe(202)
    expect(await p.take(id)).toMatchObject([{ id: row!.id, attempt: 2 }])
    await p.pass(MINUTE_MS)
    // The rest of the schedule continues.
    expect(await p.listRows()).toMatchObject([{ status: 'retrying', attempts: 2 }])
  })
})

describe('parallel pulls', () => {
  test('never answer one row twice, and all rows once', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(40)
    const taken = await Promise.all(Array.from({ length: 8 }, () => p.take(id, { max: 10 })))
    const ids = taken.flat().map((item) => item.id)
    expect(new Set(ids).size).toBe(ids.length)
    const rest = await p.take(id, { max: 100 })
    expect(new Set([...ids, ...rest.map((item) => item.id)]).size).toBe(40)
  })

  test('wait for no row that another transaction holds', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(2)
    const [first, second] = await p.listRows()
    const holder = await p.t.database.pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from webhook_dispatch_open where document_id = $1 for update', [first!.document_id])
      expect(await p.take(id)).toMatchObject([{ id: second!.document_id }])
      await holder.query('rollback')
    } finally {
      holder.release()
    }
    expect(await p.take(id)).toMatchObject([{ id: first!.document_id }])
  })

  test('acknowledgements of one receipt end it once', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(5)
    const receipts = (await p.take(id)).map((item) => item.receipt)
    const answers = await Promise.all(Array.from({ length: 6 }, () => p.settle(id, receipts)))
    for (const answer of answers) expect(answer).toEqual(receipts.map(() => 'acknowledged'))
    const came = await p.t.database.pool.query(
      `select sum(came)::int as came, sum(deliveries)::int as deliveries from webhook_delivery_minute where status = 'success'`,
    )
    expect(came.rows).toEqual([{ came: 5, deliveries: 5 }])
  })

  test('an acknowledgement and the end of its lease settle the row once', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    await p.emit(20)
    const receipts = (await p.take(id, { max: 100, lease_seconds: 10 })).map((item) => item.receipt)
    p.t.clock.advance(9_999)
    const acknowledged = p.settle(id, receipts)
    p.t.clock.advance(1)
    await Promise.all([acknowledged, p.t.app.leaseEnder.endLapsed()])
    for (const row of await p.listRows())
      expect([row.status, row.attempts]).toBeOneOf([
        ['success', 1],
        ['retrying', 1],
      ])
    await p.pass(RETRY_DELAYS_MS[0])
    const open = (await p.listRows()).filter((row) => row.status === 'retrying')
    expect(await p.take(id, { max: 100 })).toHaveLength(open.length)
  })
})
