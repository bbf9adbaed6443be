import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { buildProvisioningLedger } from '../../test/harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { EVENT_QUEUE_OFF, openDatabase } from '../postgres/statement/database.ts'

test('connections of a service whose event queue is off queue nothing for targets', async () => {
  await using database = await createTestDatabase()
  const clock = buildManualClock()
  const { connectionString } = database
  const options = { connectionString, size: 1, applicationName: 'signalbox test', onError: () => {} }
  const off = openDatabase({ ...options, settings: EVENT_QUEUE_OFF })
  try {
    const [on, silent] = [buildProvisioningLedger(database.db, clock), buildProvisioningLedger(off.db, clock)]
    await on.addTarget()
    const heard = await on.addUser()
    const unheard = await silent.addUser()
    await silent.changeUser(heard, { name: 'Renamed' })
    expect((await on.listDeliveries(heard)).map((row) => row.type)).toEqual(['user.provisioned'])
    expect(await on.listDeliveries(unheard)).toEqual([])
  } finally {
    await off.close()
  }
})
