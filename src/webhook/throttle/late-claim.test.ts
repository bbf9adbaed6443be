import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildWebhookPolicy, type WebhookPolicyDeps } from '../delivery/webhook-policy.ts'

/** Claims for two webhooks, of which one has a limit, in a process that stands still for so long meanwhile. */
async function claimAfterStall(stallMs: number) {
  await using database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const [limited, plain] = [await ledger.addWebhook({ maxPerSecond: 5 }), await ledger.addWebhook()]
  const [waiting] = await ledger.addDispatches(limited)
  await ledger.addDispatches(plain)
  const { queue } = buildWebhookPolicy({ db: database.db, clock } as Partial<WebhookPolicyDeps> as WebhookPolicyDeps)
  const now = ledger.now()
  clock.advance(stallMs)
  const request = { workerId: 'worker-a', now, fastSlots: 9, slowSlots: 9, slowGroups: [], lateGroups: [] }
  const claimed = await queue.claim({ ...request, inFlight: new Map(), perGroup: 9, hasPeers: false })
  const names = new Map([
    [limited, 'limited'],
    [plain, 'plain'],
  ])
  return {
    claimed: claimed.map(({ group }) => names.get(group as typeof plain)).sort(),
    row: await ledger.readDispatch(waiting!),
    now: ledger.now(),
  }
}

test('a claim that is answered half a second late is posted', async () => {
  expect((await claimAfterStall(500)).claimed).toEqual(['limited', 'plain'])
})

test('one that is answered later is released where its webhook has a limit: the attempt is not counted', async () => {
  const { claimed, row, now } = await claimAfterStall(501)
  expect(claimed).toEqual(['plain'])
  expect(row).toMatchObject({ status: 'pending', attempts: 0, lease_owner: null, next_attempt_at: now })
})
