import { expect, test } from 'vitest'
import { openProvisioning } from '../../test/harness/provisioning/provisioning-service.ts'

const HEALTH = '/api/v3/health/component/integration/provisioning'

test('a target that refuses everything degrades health, counts, and has an incident until it accepts a delivery', async () => {
  await using fixture = await openProvisioning()
  const { id } = await fixture.makeTarget()
  const readHealth = async () => {
    fixture.t.clock.advance(10_000)
    return (await fixture.t.admin('GET', HEALTH)).body.data
  }
  const listIncidents = async () => {
    const { rows } = await fixture.t.database.pool.query(
      'select incident, resolved_at is not null as is_over, summary from alert_incident where subject = $1',
      [id],
    )
    return rows
  }
  await fixture.makeUser()
  await fixture.t.settle()
  expect(await readHealth()).toMatchObject({ status: 'operational', details: { failed_24h: 0 } })
  expect(await listIncidents()).toEqual([])

  fixture.receiver.behave({ kind: 'status', status: 401 })
  await fixture.makeUser()
  await fixture.makeUser()
  await fixture.t.settle()
  expect(await readHealth()).toMatchObject({ status: 'degraded', details: { failed_24h: 2, dead_letters_24h: 0 } })
  const incident = { incident: 'provisioning-refused', is_over: false }
  expect(await listIncidents()).toMatchObject([{ ...incident, summary: expect.stringContaining('was refused by') }])
  expect((await fixture.t.scrape()).body).toContain('provisioning_deliveries_total{status="failed"} 2')

  fixture.receiver.behave({ kind: 'status', status: 200 })
  await fixture.makeUser()
  await fixture.t.settle()
  expect(await listIncidents()).toMatchObject([{ ...incident, is_over: true }])
  fixture.t.clock.advance(24 * 3_600_000 + 60_000)
  expect(await readHealth()).toMatchObject({ status: 'operational', details: { failed_24h: 0 } })
})
