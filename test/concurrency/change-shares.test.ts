import { expect, test } from 'vitest'
import type { AccountId } from '../../src/base/id.ts'
import { createTestApp } from '../harness/app/app.ts'
import { waitFor } from '../harness/run/wait.ts'

test('changes of one account that wait for its lock leave connections to the changes of others', async () => {
  await using app = await createTestApp()
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const { call } = await app.signInMember([account as AccountId])
  const holder = await app.database.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from account where document_id = $1 for update', [account])
    const waiting = Array.from({ length: 20 }, () =>
      call('POST', '/api/v3/contract/contract', { account, name: 'Lease' }),
    )
    let answered = 0
    for (const change of waiting) void change.then(() => (answered += 1))
    await waitFor('the changes of the account to wait for its lock', async () => {
      // A transaction keeps the state that it read first.
      await holder.query('select pg_stat_clear_snapshot()')
      const { rows } = await holder.query(
        `select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows[0].waiting > 1
    })
    const other = await app.admin('POST', '/api/v3/identity/role', { name: 'auditor', permissions: [] })
    expect(other.status).toBe(201)
    // Served in the order of their arrival, 12 of the 20 would have been given up before it.
    expect(answered).toBeLessThan(9)
    await holder.query('rollback')
    await Promise.all(waiting)
  } finally {
    await holder.query('rollback')
    holder.release()
  }
})
