import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CellsUnderTest, keyring, startCellsUnderTest } from '../../../test/harness/carriage/cells-under-test.ts'
import { BUSY_MS, waitFor } from '../../../test/harness/run/wait.ts'
import { cellContextOf, findCell, listCells } from '../../postgres/cell/cell.store.ts'
import { CellError } from './cell-error.ts'
import { readReferenceFacts, readSourceFacts } from './reference.store.ts'
import { drainCell, dropCell } from './remove-cell.ts'

let cells: CellsUnderTest
beforeAll(async () => {
  cells = await startCellsUnderTest()
})
afterAll(async () => {
  await cells[Symbol.asyncDispose]()
})

const TYPE = '0190a5c0-0000-7000-8000-0000000000e1'
const ACCOUNT = '0190a5c0-0000-7000-8000-0000000000a1'

async function codeOf(run: Promise<unknown>): Promise<string> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error === undefined) return 'done'
  if (!(error instanceof CellError)) throw error
  expect(error.message).not.toContain(new URL(cells.home).password)
  return error.code
}

describe('a cell', () => {
  test('is added, and added again, and has the reference rows with their ids', async () => {
    const { homeDb } = cells
    await homeDb.pool.query(
      `insert into event (document_id, internal, account_scope, created_at, updated_at)
       values ($1, 'invoice.create', 'account', now(), now())`,
      [TYPE],
    )
    await homeDb.pool.query(
      `insert into account (document_id, name, created_at, updated_at) values ($1, 'Example', now(), now())`,
      [ACCOUNT],
    )
    const url = await cells.create('empty_one')
    await cells.add({ url })
    await cells.add({ url })
    expect(cells.recorded).toEqual([{ command: 'cell add', cell: 'one' }])
    const [row] = await listCells(homeDb.db)
    expect(row).toMatchObject({ name: 'one', state: 'active' })
    expect(row?.databaseUrlEncrypted).not.toContain('postgres')
    expect(keyring.open(row!.databaseUrlEncrypted, cellContextOf('one'))).toBe(url)
    const cell = cells.open(url)
    expect(await readReferenceFacts(cell.db)).toMatchObject({ isSubscribed: true, isRunning: true, copying: 0 })
    const { rows } = await cell.pool.query('select document_id from event union all select document_id from account')
    expect(rows.map(({ document_id }) => document_id).toSorted()).toEqual([ACCOUNT, TYPE].toSorted())
  })

  test('gets changes of reference rows, and makes the webhooks of a deleted account inactive', async () => {
    const { homeDb } = cells
    const cell = cells.open(await withName('empty_one'))
    const webhook = '0190a5c0-0000-7000-8000-0000000000b1'
    await cell.pool.query(
      `insert into webhook (document_id, url, account, created_at, updated_at)
       values ($1, 'https://example.com/', $2, now(), now())`,
      [webhook, ACCOUNT],
    )
    const client = await cell.pool.connect()
    const heard: string[] = []
    client.on('notification', ({ payload }) => heard.push(payload ?? ''))
    await client.query('listen signalbox_change')
    await homeDb.pool.query(`update account set deleted_at = now(), updated_at = now() where document_id = $1`, [
      ACCOUNT,
    ])
    await waitFor('the change in the cell', async () => {
      const { rows } = await cell.pool.query('select is_actived, disabled_reason from webhook')
      return rows[0]?.is_actived === false && rows[0]?.disabled_reason === 'account-deleted'
    })
    const { rows } = await cell.pool.query(
      'select sum(active)::int as active, sum(inactive)::int as inactive from webhook_count',
    )
    expect(rows).toEqual([{ active: 0, inactive: 1 }])
    await waitFor('the invalidation', async () => heard.includes('*'))
    client.release()
  })

  test('knows the position of home that it has, within a second', async () => {
    const { homeDb } = cells
    const cell = cells.open(await withName('empty_one'))
    await homeDb.pool.query(`update event set updated_at = now()`)
    const { rows } = await homeDb.pool.query<{ lsn: string }>('select pg_current_wal_insert_lsn()::text as lsn')
    const startedMs = performance.now()
    await waitFor('the position', async () => {
      const { rows: had } = await cell.pool.query('select reference_position() >= $1::pg_lsn as has', [rows[0]!.lsn])
      return had[0].has
    })
    expect(performance.now() - startedMs).toBeLessThan(1_000 + BUSY_MS)
  })

  test('is refused when the database is home, has rows, or belongs to something else', async () => {
    const { homeDb } = cells
    expect(await codeOf(cells.add({ name: 'two', url: cells.home }))).toBe('cell_is_home')
    expect(await codeOf(cells.add({ name: 'two', url: await withName('empty_one') }))).toBe('cell_of_another_name')
    const foreign = await cells.create('foreign_tables')
    await cells.open(foreign).pool.query('create table invoice (id int)')
    expect(await codeOf(cells.add({ name: 'two', url: foreign }))).toBe('cell_not_empty')
    await cells
      .open(cells.cell)
      .pool.query(
        `insert into account (document_id, name, created_at, updated_at) values ($1, 'Other', now(), now())`,
        [ACCOUNT],
      )
    expect(await codeOf(cells.add({ name: 'two', url: cells.cell }))).toBe('cell_not_empty')
    expect(await codeOf(cells.add({ url: await cells.create('other_one') }))).toBe('name_taken')
    expect(await codeOf(cells.add({ name: 'two', url: 'postgres://nobody:secret@127.0.0.1:1/none' }))).toBe(
      'cell_unreachable',
    )
    expect(await codeOf(cells.add({ name: 'Two; drop', url: foreign }))).toBe('unknown_cell')
    expect((await listCells(homeDb.db)).map(({ name }) => name)).toEqual(['one'])
  })

  test('of another home is refused', async () => {
    const other = cells.open(await cells.create('other_home'))
    await other.pool.query('select 1')
    const { migrate } = await import('../../postgres/migration/migrate.ts')
    const { openOutbox } = await import('../relay/outbox.store.ts')
    await migrate(other.connectionString)
    await openOutbox(other.db)
    const url = await withName('empty_one')
    expect(await codeOf(cells.add({ url }, { home: other.db }))).toBe('cell_of_another_service')
    const inside = cells.open(url)
    expect(await codeOf(cells.add({ name: 'two', url: cells.home }, { home: inside.db }))).toBe('home_is_cell')
  })

  test('whose server cannot reach home is refused with the remedy, and goes on with the right address', async () => {
    const url = await cells.create('lost_one')
    const source = 'postgres://nobody:secret@127.0.0.1:1/none'
    expect(await codeOf(cells.add({ name: 'lost', url, source }))).toBe('home_unreachable_from_cell')
    expect(await findCell(cells.homeDb.db, { name: 'lost' })).toMatchObject({ state: 'joining' })
    expect(await codeOf(drainCell(cells.deps(), 'lost'))).toBe('cell_state')
    await cells.add({ name: 'lost', url })
    expect(await findCell(cells.homeDb.db, { name: 'lost' })).toMatchObject({ state: 'active' })
  })

  test('is drained, and removed when it has no account', async () => {
    const { homeDb } = cells
    await homeDb.pool.query(`insert into account_cell (account, cell, version) values ($1, 'lost', 1)`, [ACCOUNT])
    await drainCell(cells.deps(), 'lost')
    await drainCell(cells.deps(), 'lost')
    expect(cells.recorded.filter(({ command }) => command === 'cell drain')).toHaveLength(1)
    expect(await codeOf(dropCell(cells.deps(), 'lost'))).toBe('cell_has_accounts')
    await homeDb.pool.query('delete from account_cell')
    expect(await dropCell(cells.deps(), 'lost')).toEqual({ isLeft: true })
    expect(await readSourceFacts(homeDb.db, 'lost')).toEqual({ lagBytes: null, isLost: true })
    const cell = cells.open(await withName('lost_one'))
    expect(await readReferenceFacts(cell.db)).toMatchObject({ isSubscribed: false })
    expect(await codeOf(dropCell(cells.deps(), 'lost'))).toBe('unknown_cell')
    await homeDb.pool.query(`update event set description = 'meanwhile', updated_at = now()`)
    await cells.add({ name: 'lost', url: await withName('lost_one') })
    const { rows } = await cell.pool.query('select document_id, description from event')
    expect(rows).toEqual([{ document_id: TYPE, description: 'meanwhile' }])
    // A slot that home lost, as a promoted standby does.
    await homeDb.pool.query(
      `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'signalbox_lost'`,
    )
    await waitFor('the end of the slot', async () => {
      await homeDb.pool.query(
        `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'signalbox_lost' and not active`,
      )
      return (await readSourceFacts(homeDb.db, 'lost')).isLost
    })
    await homeDb.pool.query(`update event set description = 'unseen', updated_at = now()`)
    await cells.add({ name: 'lost', url: await withName('lost_one') })
    await waitFor('the rows of home', async () => {
      const { rows: now } = await cell.pool.query('select description from event')
      return now[0]?.description === 'unseen'
    })
  })
})

const withName = async (name: string) => cells.cell.replace(/\/[^/]*$/, `/${name}`)

test('home without logical changes, or without a log, has no cells', async () => {
  await using small = await startCellsUnderTest({ settings: { wal_level: 'replica' } })
  expect(await codeOfAny(small.add())).toBe('home_wal_level')
  await using silent = await startCellsUnderTest({ settings: { max_wal_senders: '0' } })
  expect(await codeOfAny(silent.add())).toBe('home_slots')
  await small.homeDb.pool.query('select close_event_log()')
  expect(await codeOfAny(small.add())).toBe('log_off')
})

const codeOfAny = (run: Promise<unknown>) =>
  run.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  )
