import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { replayDispatch } from './dispatch.ts'

test('nothing is replayed while the queue of events is off', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, buildManualClock())
  const [id] = await ledger.addDispatches(await ledger.addWebhook(), { status: 'exhausted', attempts: 5 })
  const replay = (enableApiEventQueue: boolean, of = String(id)) =>
    inTransaction(db, (tx) =>
      replayDispatch({ ...ledger.deps, enableApiEventQueue } as Parameters<typeof replayDispatch>[0], tx, of, {
        ...{ confirmDuplicate: false, now: ledger.now() },
      }),
    )
  await expect(replay(false)).rejects.toMatchObject({ status: 409, code: 'conflict' })
  expect(await ledger.readDispatch(id!)).toMatchObject({ status: 'exhausted', next_attempt_at: null })
  await expect(replay(true, ledger.ids.next<'dispatch'>())).rejects.toMatchObject({ status: 404 })
  expect(await replay(true)).toMatchObject({ id, status: 'retrying', trigger: 'replay', nextAttemptAt: ledger.now() })
  expect(await ledger.readDispatch(id!)).toMatchObject({ status: 'retrying', next_attempt_at: ledger.now() })
})
