import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildProvisioningLedger } from '../../../test/harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { claimDeliveries } from './claim.store.ts'
import { type DeliveryChange, lockHeldClaims, settleDeliveries } from './settle.store.ts'

test('the last attempt of a delivery began when its entry of the log says, not when it was claimed', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildProvisioningLedger(db, clock)
  await ledger.addTarget()
  await ledger.addUser()
  const now = new Date(clock.now())
  const [claimed] = await claimDeliveries(db, {
    ...{ workerId: 'worker-a', now, fastSlots: 1, slowSlots: 0, slowGroups: [], lateGroups: [] },
    ...{ inFlight: new Map(), perGroup: 1, hasPeers: false },
  })
  clock.advance(43)
  const startedAt = new Date(clock.now())
  clock.advance(7)
  const endedAt = new Date(clock.now())
  const { id, fence, attempt, target, change } = claimed!
  const of = { id, attempt, target: target.id, user: change.user.id }
  const ended: DeliveryChange = {
    ...{ ...of, status: 'retrying', nextAttemptAt: new Date(clock.now() + 30_000) },
    ...{ trigger: 'schedule', worker: 'worker-a', statusCode: 503, errorClass: 'http_5xx', durationMs: 7 },
    ...{ startedAt, endedAt, responseExcerpt: null, responseHeaders: null, timings: null },
    ...{ remoteId: undefined, generation: null },
  }
  await inTransaction(db, async (tx) => {
    await lockHeldClaims(tx, [{ ...of, fence }])
    await settleDeliveries(tx, [ended])
  })
  const logged = await db.selectFrom('provisioning_attempt').select('started_at').execute()
  expect(logged).toEqual([{ started_at: startedAt }])
  expect(await ledger.readDelivery(id)).toMatchObject({ last_attempt_at: startedAt, updated_at: endedAt })
})
