import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { EndedAttempt } from './outcome.ts'
import { settleAttempts } from './settle.ts'

test('a success that ends after a failure resets the count of failures, also when both are recorded at once', async () => {
  await using database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const webhook = await ledger.addWebhook()
  const leaseUntil = new Date(clock.now() + 30_000)
  const ids = await ledger.addDispatches(webhook, { count: 2, leaseUntil, attempts: 1 })
  const end = (index: number, statusCode: number): EndedAttempt => ({
    id: ids[index]!,
    fence: 1,
    attempt: 1,
    trigger: 'schedule',
    isTest: false,
    webhook,
    event: 'contract.create',
    workerId: 'worker-lost',
    traceId: null,
    startedAt: ledger.now(),
    endedAt: new Date(clock.now() + index),
    durationMs: 1,
    result: { statusCode },
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
  })
  const { recorded } = await settleAttempts(ledger.deps, database.db, [end(0, 302), end(1, 200)])
  expect(recorded.map((result) => result.isRecorded)).toEqual([true, true])
  expect(await ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0 })
})
