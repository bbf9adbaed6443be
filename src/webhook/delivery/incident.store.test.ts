import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { AUTO_DISABLE_REASON } from './failure-count.ts'
import { listDisabled, listFailing } from './incident.store.ts'

test('of the webhooks asked for, those that live and fail, and those that the service has disabled', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, buildManualClock())
  const [sound, failing, gone] = [
    await ledger.addWebhook(),
    await ledger.addWebhook({ consecutiveFailures: 1 }),
    await ledger.addWebhook({ consecutiveFailures: 1, isDeleted: true }),
  ]
  await ledger.addWebhook({ consecutiveFailures: 1 })
  const asked = [sound, failing, gone]
  expect(await listFailing(db, asked)).toEqual([failing])
  const disable = async (id: string, reason: string, isActived: boolean) => {
    const columns = { is_actived: isActived, disabled_reason: reason }
    await db.updateTable('webhook').set(columns).where('document_id', '=', id).execute()
  }
  await disable(failing, AUTO_DISABLE_REASON, false)
  await disable(gone, AUTO_DISABLE_REASON, false)
  await disable(sound, 'other', false)
  expect(await listDisabled(db, asked)).toEqual([failing])
  await disable(sound, AUTO_DISABLE_REASON, true)
  expect(await listDisabled(db, asked)).toEqual([failing])
})
