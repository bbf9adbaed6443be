import { expect, test } from 'vitest'
import { openProvisioning } from '../../../test/harness/provisioning/provisioning-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const TARGETS = '/api/v3/provisioning/target'
const USERS = '/api/v3/identity/user'
const DAY_MS = 24 * 3_600_000

const fixture = await openForFile(openProvisioning())

const sweep = () => fixture.t.app.maintenance.sweep()
const countRows = async (table: string, target: string): Promise<number> => {
  const query = `select count(*)::int as n from ${table} where target = $1`
  return (await fixture.t.database.pool.query(query, [target])).rows[0].n
}

test('what a change queued for a target while that was being deleted is cancelled by the next sweep', async () => {
  const { id } = await fixture.makeTarget()
  const user = await fixture.makeUser()
  await fixture.t.settle()
  await fixture.call('DELETE', `${TARGETS}/${id}`)
  // As a transaction does that read the target before the deletion was committed.
  await fixture.t.database.pool.query(
    "select queue_provisioning(array[$1]::uuid[], array[$2]::uuid[], array['user.updated'], now(), null)",
    [id, user.id],
  )
  expect((await sweep()).provisioningOrphans).toBe(1)
  expect((await fixture.listDeliveries(id)).map((row) => row.status).toSorted()).toEqual(['cancelled', 'delivered'])
  expect((await sweep()).provisioningOrphans).toBe(0)
})

test('the ledger of a deleted target is kept for 30 days, and what its users were there as long', async () => {
  const [gone, kept] = [await fixture.makeTarget(), await fixture.makeTarget()]
  const user = await fixture.makeUser()
  await fixture.t.settle()
  await fixture.call('DELETE', `${TARGETS}/${gone.id}`)
  fixture.t.clock.advance(30 * DAY_MS)
  await sweep()
  expect([await countRows('provisioning_stream', gone.id), await countRows('provisioning_delivery', gone.id)]).toEqual([
    1, 1,
  ])
  fixture.t.clock.advance(1)
  await sweep()
  expect([await countRows('provisioning_stream', gone.id), await countRows('provisioning_delivery', gone.id)]).toEqual([
    0, 0,
  ])
  expect(await countRows('provisioning_delivery', kept.id)).toBe(0)
  expect(await countRows('provisioning_stream', kept.id)).toBe(1)
  await fixture.call('PATCH', `${USERS}/${user.id}`, { name: 'Later' })
  await fixture.t.settle()
  expect(fixture.received(kept.path).at(-1)?.body).toMatchObject({
    type: 'user.updated',
    data: { user: { name: 'Later' } },
  })
})
