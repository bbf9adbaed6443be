import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { cancelWaitingDispatches } from '../ledger/removal.store.ts'
import { deleteWebhook } from './webhook.ts'

const database = await openForFile(createTestDatabase())

test('a webhook that is deleted posts nothing that waits, and others go on', async () => {
  const ledger = buildLedger(database.db, buildManualClock())
  await ledger.addEventType('contract.create')
  const [hook, beside] = [await ledger.addWebhook(), await ledger.addWebhook()]
  const [waiting] = await ledger.addDispatches(hook)
  const [other] = await ledger.addDispatches(beside)
  const statusOf = async (id: string) =>
    (await database.db.selectFrom('webhook_dispatch').select('status').where('document_id', '=', id).execute())[0]
  expect([await statusOf(waiting!), await statusOf(other!)]).toEqual([{ status: 'pending' }, { status: 'pending' }])
  const deps = {
    cancelWaitingDispatches: (
      ...[db, webhook, now]: Parameters<Parameters<typeof deleteWebhook>[0]['cancelWaitingDispatches']>
    ) => cancelWaitingDispatches(db, { webhook, workerId: 'worker-a', now }),
  }
  const input = { caller: { userId: null } as unknown as Caller, now: ledger.now() }
  const deleted = await inTransaction(database.db, (tx) => deleteWebhook(deps, tx, hook, input))
  expect(deleted).toMatchObject({ id: hook, deletedAt: ledger.now() })
  expect(await statusOf(waiting!)).not.toEqual({ status: 'pending' })
  expect(await statusOf(other!)).toEqual({ status: 'pending' })
  await expect(inTransaction(database.db, (tx) => deleteWebhook(deps, tx, hook, input))).rejects.toMatchObject({
    code: 'not_found',
  })
})
