import { expect, test } from 'vitest'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { openProvisioning, signAgain } from '../../../test/harness/provisioning/provisioning-service.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const HOUR_MS = 3_600_000

test('a dead letter posts one signed alert, however many follow, and the next success of the target its end', async () => {
  await using alerts = await startReceiver()
  const env = { ALERT_WEBHOOK_URL: `${alerts.origin}/alerts`, ALERT_WEBHOOK_SECRET: SECRET }
  await using receiver = await startReceiver()
  await using fixture = await openProvisioning({
    receiver,
    env: { ...env, WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
  const { id } = await fixture.makeTarget()
  receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeUser()
  await fixture.makeUser()
  alerts.behaveNext({ kind: 'status', status: 503 })
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  const bodies = () => alerts.requests.map(({ body }) => JSON.parse(body.toString()))
  // The first POST was refused and made again.
  expect(bodies().map(({ status }) => status)).toEqual(['firing', 'firing'])
  expect(bodies()[1]).toEqual({
    id: bodies()[0].id,
    incident: 'provisioning-dead-letter',
    subject: id,
    status: 'firing',
    since: expect.any(String),
    resolved_at: null,
    summary: expect.stringContaining(id),
    url: expect.stringMatching(new RegExp(`^http.*/api/v3/provisioning/target/${id}$`)),
  })
  const [first] = alerts.requests
  const signature = first?.headers['x-service-signature'] ?? ''
  expect(signature).toBe(signAgain(SECRET, signature, first?.body.toString() ?? ''))
  receiver.behave({ kind: 'status', status: 200 })
  await fixture.makeUser()
  await fixture.pass(HOUR_MS)
  expect(bodies().map(({ status }) => status)).toEqual(['firing', 'firing', 'resolved'])
  receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeUser()
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  expect(bodies().at(-1)).toMatchObject({ status: 'firing' })
  expect(bodies().at(-1).id).not.toBe(bodies()[0].id)
})

test('without ALERT_WEBHOOK_URL nothing is posted, and the incident is kept', async () => {
  await using fixture = await openProvisioning()
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeTarget()
  await fixture.makeUser()
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  const { rows } = await fixture.t.database.pool.query('select firing_posted_at, attempts from alert_incident')
  expect(rows).toEqual([{ firing_posted_at: null, attempts: 0 }])
})
