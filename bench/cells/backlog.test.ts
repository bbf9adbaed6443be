import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { buildLedger } from '../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { describeBacklog, describeLoad, readBacklog } from './backlog.ts'

const NONE = { unrouted: 0, due: 0, claimed: 0, givenBack: 0, retried: 0, errors: [] }

test('a backlog is told by the reason why it waits', () => {
  expect(describeBacklog(NONE)).toBe('nothing waits in the databases')
  expect(describeBacklog({ ...NONE, due: 448, claimed: 64 })).toBe(
    '64 are claimed: their attempt is under way or not recorded; 448 are due: no process has claimed them',
  )
  expect(describeBacklog({ ...NONE, retried: 3, errors: ['connect', 'timeout'], givenBack: 2, unrouted: 1 })).toBe(
    '3 wait for the retry of a failed attempt (connect, timeout); 2 were given back for a fault of the process; 1 are events that are not routed',
  )
})

test('the load is named beside the cores', () => {
  expect(describeLoad()).toMatch(/^load of the machine \d+\.\d on \d+ cores$/)
})

test('each delivery is counted by what it waits for, over all databases', async () => {
  await using one = await createTestDatabase()
  await using two = await createTestDatabase()
  const [past, future] = [new Date(0), new Date('2100-01-01')]
  const fill = async ({ db }: typeof one, failed: number) => {
    const ledger = buildLedger(db, buildManualClock())
    const webhook = await ledger.addWebhook()
    await ledger.addDispatches(webhook, { dueAt: past })
    await ledger.addDispatches(webhook, { dueAt: future })
    await ledger.addDispatches(webhook, { dueAt: past, leaseUntil: future })
    for (const error of ['timeout', 'connect'].slice(0, failed)) {
      const [id] = await ledger.addDispatches(webhook, { dueAt: future })
      const change = { status: 'retrying', attempts: 1, last_error: error }
      await db.updateTable('webhook_dispatch_open').set(change).where('document_id', '=', id!).execute()
    }
  }
  await fill(one, 1)
  await fill(two, 2)
  expect(await readBacklog([one, two])).toEqual({
    ...{ unrouted: 0, due: 2, claimed: 2, givenBack: 2, retried: 3, errors: ['connect', 'timeout'] },
  })
})
