import { afterEach, describe, expect, test } from 'vitest'
import { openProvisioning, signAgain } from '../../test/harness/provisioning/provisioning-service.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'

const USERS = '/api/v3/identity/user'
const TARGETS = '/api/v3/provisioning/target'
const DELIVERIES = '/api/v3/provisioning/delivery'

const fixture = await openForFile(openProvisioning())
afterEach(async () => {
  fixture.receiver.behave({ kind: 'status', status: 200 })
  for (const row of await fixture.call('GET', TARGETS)) await fixture.call('DELETE', `${TARGETS}/${row.document_id}`)
})

describe('a change of a user', () => {
  test('arrives with each of the five events, in order, with identity and status', async () => {
    const { path } = await fixture.makeTarget()
    const { id, email } = await fixture.makeUser({ name: 'Ada' })
    await fixture.call('PATCH', `${USERS}/${id}`, { name: 'Ada L.' })
    await fixture.call('POST', `${USERS}/${id}/disable`)
    await fixture.call('POST', `${USERS}/${id}/enable`)
    await fixture.call('DELETE', `${USERS}/${id}`)
    await fixture.t.settle()
    const user = { document_id: id, email, name: 'Ada L.', status: 'active' }
    expect(fixture.received(path).map(({ body }) => [body.type, body.data])).toEqual([
      ['user.provisioned', { user: { ...user, name: 'Ada' } }],
      ['user.updated', { user }],
      ['user.disabled', { user: { ...user, status: 'disabled' } }],
      ['user.enabled', { user }],
      ['user.deprovisioned', { user: { ...user, status: 'deleted' } }],
    ])
  })

  test('is signed in both ways with the secret of the target, and has the headers of a delivery', async () => {
    const { id, path, secret } = await fixture.makeTarget()
    await fixture.makeUser()
    await fixture.t.settle()
    const [got] = fixture.received(path)
    const [row] = await fixture.listDeliveries(id)
    expect(got?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Signalbox-Provisioning\//),
      'x-service-event': 'user.provisioned',
      'x-service-delivery': row.document_id,
      'x-service-attempt': '1',
      'webhook-id': row.event_id,
    })
    const signature = got?.headers['x-service-signature'] ?? ''
    expect(signature).toBe(signAgain(secret, signature, got?.raw ?? ''))
    expect(got?.headers['webhook-signature']).toMatch(/^v1,/)
    expect(got?.body).toMatchObject({ id: row.event_id, attempt: 1, api_version: '2026-09-11' })
  })

  test('has one event id at every target, and a delivery of its own at each', async () => {
    const [first, second] = [await fixture.makeTarget(), await fixture.makeTarget()]
    await fixture.makeUser()
    await fixture.t.settle()
    const bodies = [...fixture.received(first.path), ...fixture.received(second.path)]
    expect(bodies).toHaveLength(2)
    expect(bodies[0]?.body.id).toBe(bodies[1]?.body.id)
    expect(bodies[0]?.headers['x-service-delivery']).not.toBe(bodies[1]?.headers['x-service-delivery'])
  })

  test('that concerns neither identity nor status is not delivered', async () => {
    const { id } = await fixture.makeTarget()
    const user = await fixture.makeUser()
    const role = await fixture.call('POST', '/api/v3/identity/role', { name: 'auditor', permissions: ['contract:*'] })
    await fixture.call('PATCH', `${USERS}/${user.id}`, { roles: [role.document_id] })
    const account = await fixture.call('POST', '/api/v3/identity/account', { name: 'Acme' })
    await fixture.call('POST', `/api/v3/identity/account/${account.document_id}/member`, { user: user.id })
    await fixture.call('PATCH', `${USERS}/${user.id}`, { password: 'correct horse battery staple' })
    await fixture.t.settle()
    expect((await fixture.listDeliveries(id)).map((row) => row.type)).toEqual(['user.provisioned'])
    const bodies = JSON.stringify(fixture.received().map(({ body }) => body))
    for (const word of ['auditor', 'contract:', 'Acme', account.document_id, role.document_id])
      expect(bodies).not.toContain(word)
  })

  test('that is rolled back queues nothing', async () => {
    const { id } = await fixture.makeTarget()
    const user = await fixture.makeUser()
    const refused = await fixture.tryCall('POST', USERS, { email: user.email })
    expect(refused.status).toBe(409)
    expect(await fixture.listDeliveries(id)).toHaveLength(1)
  })

  test('is queued for no target that is deleted, and for none when there is none', async () => {
    const { id } = await fixture.makeTarget()
    await fixture.call('DELETE', `${TARGETS}/${id}`)
    await fixture.makeUser()
    expect(await fixture.listDeliveries(id)).toEqual([])
  })
})

describe('the order of deliveries', () => {
  test('of one user waits for the one before, while other users go on', async () => {
    const { id, path } = await fixture.makeTarget()
    const [first, second] = [await fixture.makeUser(), await fixture.makeUser()]
    await fixture.t.settle()
    fixture.receiver.behaveNext({ kind: 'status', status: 503 })
    await fixture.call('PATCH', `${USERS}/${first.id}`, { name: 'First' })
    await fixture.t.settle()
    await fixture.call('PATCH', `${USERS}/${first.id}`, { name: 'Second' })
    await fixture.call('PATCH', `${USERS}/${second.id}`, { name: 'Other' })
    await fixture.t.settle()
    const names = () => fixture.received(path).map(({ body }) => body.data.user.name)
    expect(names()).toEqual([null, null, 'First', 'Other'])
    await fixture.pass(30_000)
    expect(names()).toEqual([null, null, 'First', 'Other', 'First', 'Second'])
    expect((await fixture.listDeliveries(id)).map((row) => row.status)).toEqual(Array(5).fill('delivered'))
  })

  test('goes on behind one that failed for good', async () => {
    const { id } = await fixture.makeTarget()
    fixture.receiver.behaveNext({ kind: 'status', status: 422 })
    const user = await fixture.makeUser()
    await fixture.call('POST', `${USERS}/${user.id}/disable`)
    await fixture.t.settle()
    expect((await fixture.listDeliveries(id)).map((row) => [row.type, row.status])).toEqual([
      ['user.provisioned', 'failed'],
      ['user.disabled', 'delivered'],
    ])
  })
})

describe('retries', () => {
  test('make eight attempts and end as dead letter, with an event and a log entry each', async () => {
    fixture.receiver.behave({ kind: 'status', status: 500 })
    const { id, path } = await fixture.makeTarget()
    await fixture.makeUser()
    for (let n = 0; n < 12; n += 1) await fixture.pass(3_600_000)
    expect(fixture.received(path).map(({ body }) => body.attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    const [row] = await fixture.listDeliveries(id)
    expect(row).toMatchObject({ status: 'dead_letter', attempts: 8, last_status_code: 500, next_attempt_at: null })
    const read = await fixture.call('GET', `${DELIVERIES}/${row.document_id}`)
    expect(read.attempts_log).toHaveLength(8)
    expect(read.attempts_log[7]).toMatchObject({ attempt: 8, trigger: 'schedule', error_class: 'http_5xx' })
    const { rows } = await fixture.t.database.pool.query(
      "select resource_id from event_occurrence where event = 'provisioning-delivery.dead-letter' and resource_id = $1",
      [row.document_id],
    )
    expect(rows).toHaveLength(1)
  })

  test('wait up to 30 s the first time, and never less than a millisecond', async () => {
    fixture.receiver.behave({ kind: 'status', status: 500 })
    const { id } = await fixture.makeTarget()
    await fixture.makeUser()
    await fixture.t.settle()
    const [row] = await fixture.listDeliveries(id)
    const wait = Date.parse(row.next_attempt_at) - fixture.t.clock.now()
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(30_000)
  })

  test('are not made after a 4xx or a redirect', async () => {
    const { id, path } = await fixture.makeTarget()
    fixture.receiver.behaveNext({ kind: 'status', status: 404 }, { kind: 'redirect', location: 'https://example.com/' })
    await fixture.makeUser()
    await fixture.makeUser()
    await fixture.pass(3_600_000)
    expect(fixture.received(path)).toHaveLength(2)
    expect((await fixture.listDeliveries(id)).map((row) => row.status)).toEqual(['failed', 'failed'])
  })
})

describe('a replay', () => {
  const replay = (id: string, body?: object) => fixture.tryCall('POST', `${DELIVERIES}/${id}/replay`, body)

  test('makes one more attempt of a dead letter, counts on, and ends it either way', async () => {
    fixture.receiver.behave({ kind: 'status', status: 500 })
    const { id, path } = await fixture.makeTarget()
    await fixture.makeUser()
    for (let n = 0; n < 12; n += 1) await fixture.pass(3_600_000)
    const [row] = await fixture.listDeliveries(id)
    expect((await replay(row.document_id)).status).toBe(202)
    await fixture.pass(3_600_000)
    expect(await fixture.call('GET', `${DELIVERIES}/${row.document_id}`)).toMatchObject({
      status: 'dead_letter',
      attempts: 9,
    })
    fixture.receiver.behave({ kind: 'status', status: 204 })
    expect((await replay(row.document_id)).status).toBe(202)
    await fixture.t.settle()
    const read = await fixture.call('GET', `${DELIVERIES}/${row.document_id}`)
    expect(read).toMatchObject({ status: 'delivered', attempts: 10 })
    expect(read.attempts_log.at(-1).trigger).toBe('replay')
    expect(fixture.received(path)).toHaveLength(10)
  })

  test('of one that waits makes its next attempt now, and its schedule goes on, eight attempts in all', async () => {
    fixture.receiver.behave({ kind: 'status', status: 500 })
    const { id, path } = await fixture.makeTarget()
    await fixture.makeUser()
    await fixture.t.settle()
    const [row] = await fixture.listDeliveries(id)
    const read = () => fixture.call('GET', `${DELIVERIES}/${row.document_id}`)
    const confirm = { confirm_duplicate: true }
    expect(await read()).toMatchObject({ status: 'retrying', attempts: 1 })
    expect((await replay(row.document_id)).body.code).toBe('duplicate_not_confirmed')
    expect((await replay(row.document_id, confirm)).status).toBe(202)
    // It waits for the attempt that was asked for, once.
    expect((await replay(row.document_id, confirm)).body.code).toBe('conflict')
    await fixture.t.settle()
    expect(await read()).toMatchObject({ status: 'retrying', attempts: 2 })
    expect((await replay(row.document_id, confirm)).status).toBe(202)
    await fixture.t.settle()
    for (let n = 0; n < 12; n += 1) await fixture.pass(3_600_000)
    const ended = await read()
    expect(ended).toMatchObject({ status: 'dead_letter', attempts: 8 })
    expect(ended.attempts_log.map((item: { trigger: string }) => item.trigger)).toEqual([
      ...['schedule', 'replay', 'replay', 'schedule', 'schedule', 'schedule', 'schedule', 'schedule'],
    ])
    expect(fixture.received(path)).toHaveLength(8)
  })

  test('of what was delivered needs a confirmation', async () => {
    const { id, path } = await fixture.makeTarget()
    await fixture.makeUser()
    await fixture.t.settle()
    const [row] = await fixture.listDeliveries(id)
    const refused = await replay(row.document_id)
    expect([refused.status, refused.body.code]).toEqual([409, 'duplicate_not_confirmed'])
    expect((await replay(row.document_id, { confirm_duplicate: true })).status).toBe(202)
    await fixture.t.settle()
    expect(fixture.received(path)).toHaveLength(2)
  })

  test('of an older state is refused, since a newer one has arrived', async () => {
    const { id } = await fixture.makeTarget()
    fixture.receiver.behaveNext({ kind: 'status', status: 422 })
    const user = await fixture.makeUser()
    await fixture.call('POST', `${USERS}/${user.id}/disable`)
    await fixture.t.settle()
    const [older] = await fixture.listDeliveries(id)
    const refused = await replay(older.document_id, { confirm_duplicate: true })
    expect([refused.status, refused.body.code]).toEqual([409, 'delivery_superseded'])
  })

  test('for an inactive or deleted target is refused, and one that waits is not replayed twice', async () => {
    const { id } = await fixture.makeTarget()
    fixture.receiver.behaveNext({ kind: 'status', status: 422 })
    await fixture.makeUser()
    await fixture.t.settle()
    const [row] = await fixture.listDeliveries(id)
    await fixture.call('PATCH', `${TARGETS}/${id}/active`, { is_actived: false })
    expect((await replay(row.document_id)).body.code).toBe('target_inactive')
    await fixture.call('PATCH', `${TARGETS}/${id}/active`, { is_actived: true })
    expect((await replay(row.document_id)).status).toBe(202)
    const again = await replay(row.document_id, { confirm_duplicate: true })
    expect([again.status, again.body.code]).toEqual([409, 'conflict'])
    await fixture.call('DELETE', `${TARGETS}/${id}`)
    expect((await replay(row.document_id)).body.code).toBe('target_inactive')
  })
})

describe('a target that is not active', () => {
  test('keeps what is queued for it, and gets it in order when it is active again', async () => {
    const { id, path } = await fixture.makeTarget()
    await fixture.call('PATCH', `${TARGETS}/${id}/active`, { is_actived: false })
    const user = await fixture.makeUser()
    await fixture.call('POST', `${USERS}/${user.id}/disable`)
    await fixture.pass(60_000)
    expect(fixture.received(path)).toEqual([])
    await fixture.call('PATCH', `${TARGETS}/${id}/active`, { is_actived: true })
    await fixture.t.settle()
    expect(fixture.received(path).map(({ body }) => body.type)).toEqual(['user.provisioned', 'user.disabled'])
  })

  test('has what waits cancelled when it is deleted', async () => {
    fixture.receiver.behave({ kind: 'status', status: 500 })
    const { id, path } = await fixture.makeTarget()
    const user = await fixture.makeUser()
    await fixture.call('POST', `${USERS}/${user.id}/disable`)
    await fixture.t.settle()
    await fixture.call('DELETE', `${TARGETS}/${id}`)
    expect((await fixture.listDeliveries(id)).map((row) => row.status)).toEqual(['cancelled', 'cancelled'])
    await fixture.pass(7_200_000)
    expect(fixture.received(path)).toHaveLength(1)
  })
})
