import { expect, test } from 'vitest'
import { startCellsUnderTest } from '../../../test/harness/carriage/cells-under-test.ts'
import { acknowledgeFault, readCellStatus } from './cell-status.ts'

test('the status says of each database what is to be done, also of one that is away', async () => {
  await using cells = await startCellsUnderTest()
  const read = async () => {
    const status = await readCellStatus(cells.deps(), { hasLog: true })
    expect(JSON.stringify(status)).not.toContain(new URL(cells.cell).password)
    return status
  }
  expect(await read()).toMatchObject({ databases: [{ name: 'home', intake: null }], remedies: [] })
  await cells.add()
  const cell = cells.open(cells.cell)
  const lease = `update log_intake set runner = 'a', lease_until = now() + interval '1 hour'`
  await Promise.all([cells.homeDb, cell].map(({ pool }) => pool.query(lease)))
  expect(await read()).toMatchObject({
    databases: [
      { name: 'home', state: 'home', is_reachable: true },
      {
        ...{ name: 'one', state: 'active', accounts: 0, is_reachable: true, outbox: { waiting: 0 } },
        ...{ reference: { is_running: true, copying: 0 }, intake: { sequence: 0, has_runner: true, fault: null } },
      },
    ],
    remedies: [],
  })
  expect((await readCellStatus(cells.deps(), { hasLog: false })).remedies).toEqual([
    expect.stringContaining('EVENT_LOG_URL is not set'),
  ])

  await cell.pool.query(
    `update log_intake set fault = 'expired', fault_at = now(), missing_since = '2026-01-01T00:00:00Z'`,
  )
  expect((await read()).remedies).toEqual([expect.stringContaining('republish --since 2026-01-01T00:00:00.000Z')])
  await acknowledgeFault(cells.deps(), 'one')
  expect((await read()).remedies).toEqual([])
  expect(cells.recorded.at(-1)).toEqual({ command: 'cell acknowledge', cell: 'one' })

  await cells.homeDb.pool.query(
    `insert into account_move (account, target, version, step, drain_until, runner, lease_until, created_at, updated_at)
     values ('0190a5c0-0000-7000-8000-0000000000a1', 'one', 1, 'copy', now() + interval '1 h', 'a',
       now() + interval '1 h', now(), now())`,
  )
  expect(await read()).toMatchObject({
    ...{ moves: [{ from: 'home', to: 'one', step: 'copy', is_running: true }], remedies: [] },
  })
  await cells.homeDb.pool.query(`update account_move set lease_until = now() - interval '1 s'`)
  expect((await read()).remedies).toEqual([
    expect.stringMatching(/from home to one was interrupted \(copy\).*account move 0190a5c0.*--back/),
  ])
  await cells.homeDb.pool.query(`update account_move set step = 'switch', runner = null, lease_until = null`)
  expect((await read()).remedies).toEqual([])
  await cells.homeDb.pool.query(`update account_move set updated_at = now() - interval '16 s'`)
  expect((await read()).remedies).toEqual([expect.not.stringContaining('--back')])
  await cells.homeDb.pool.query('delete from account_move')

  cells.setAway('cell', true)
  expect(await read()).toMatchObject({
    databases: [{ name: 'home' }, { name: 'one', is_reachable: false, intake: null }],
    remedies: [expect.stringContaining('one cannot be reached')],
  })
})
