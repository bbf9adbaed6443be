import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readReferenceFacts, readSourceFacts } from '../../src/carriage/cell/reference.store.ts'
import { findCell } from '../../src/postgres/cell/cell.store.ts'
import { type CellsUnderTest, startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { limit, waitFor } from '../harness/run/wait.ts'

const FAR_MS = 120_000

/** Room for the objects of a start: it collects less. */
const YOUNG = ['--min-semi-space-size=16']

let cells: CellsUnderTest
let directory: string
beforeAll(async () => {
  cells = await startCellsUnderTest()
  directory = await mkdtemp(join(tmpdir(), 'signalbox cell '))
})
afterAll(async () => {
  await cells[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const buildEnvironment = () => ({ ...buildServiceEnvironment(cells.home), EVENT_LOG_URL: 'nats://127.0.0.1:1' })

/** Kills the command with SIGKILL when a database has done a statement whose answer it has not got. */
async function killBehind(args: string[], where: 'home' | 'cell', statement: string): Promise<void> {
  const answered = cells.holdAnswer(where, statement)
  const program = [...YOUNG, await bundleProgram(), 'cell', ...args]
  await using command = startProcess({ args: program, env: buildEnvironment() })
  const ended = command.ended.then(({ code }) => {
    throw new Error(`the command ended with ${code} before "${statement}": ${command.stderr()}`)
  })
  await limit(Promise.race([answered, ended]), FAR_MS, `the statement "${statement}"`)
  ended.catch(() => {})
  await command.kill()
}

/** A statement of each step, in their order. */
const STEPS = [
  ['home', 'insert into database_identity'],
  ['home', 'insert into cell as c'],
  ['cell', 'create table webhook_dispatch_open'],
  ['cell', 'create table log_intake'],
  ['cell', 'select become_cell('],
  ['cell', 'select open_event_log('],
  ['home', 'insert into log_intake'],
  ['cell', 'insert into log_intake'],
  ['home', 'select publish_reference('],
  ['home', 'select open_reference_slot('],
  ['cell', 'select subscribe_reference('],
  ['cell', 'pg_subscription_rel'],
  ['home', 'update cell set state'],
] as const

const readAudit = async () =>
  (await cells.homeDb.pool.query(`select action from audit_log where action like 'cell.%' order by created_at`)).rows

test('a command that is killed behind each of its steps goes on when it is run again', async () => {
  const { url, add } = await describeAdd('one')
  await cells.homeDb.pool.query(
    `insert into account (document_id, name, created_at, updated_at)
     values ('0190a5c0-0000-7000-8000-0000000000a1', 'Example', now(), now())`,
  )
  for (const [where, statement] of STEPS) await killBehind(add, where, statement)
  expect(await readAudit()).toEqual([])
  expect(await findCell(cells.homeDb.db, { name: 'one' })).toMatchObject({ state: 'joining' })

  expect(await run(...add)).toEqual([0, expect.stringContaining('The cell one is active.')])
  expect(await readAudit()).toEqual([{ action: 'cell.add' }])
  expect(await findCell(cells.homeDb.db, { name: 'one' })).toMatchObject({ state: 'active' })
  const cell = cells.open(url)
  expect(await readReferenceFacts(cell.db)).toMatchObject({ isSubscribed: true, copying: 0 })
  expect((await cell.pool.query('select document_id from account')).rows).toEqual([
    { document_id: '0190a5c0-0000-7000-8000-0000000000a1' },
  ])
  const { rows } = await cells.homeDb.pool.query('select slot_name from pg_replication_slots where not temporary')
  expect(rows.filter(({ slot_name }) => slot_name.startsWith('signalbox_'))).toEqual([{ slot_name: 'signalbox_one' }])
  expect((await run('remove', 'one'))[0]).toBe(0)
}, 900_000)

/** Adds a cell in a database of its own. Returns the arguments that do so. */
async function describeAdd(name: string): Promise<{ url: string; add: string[] }> {
  const url = await cells.create(`database_of_${name}`)
  const file = join(directory, `${name}.url`)
  await writeFile(file, url)
  return { url, add: ['add', name, '--url-file', file] }
}

/** Runs a command that nothing kills. */
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await runCommand(['cell', ...args], { env: buildEnvironment() })
  return [code, stdout + stderr]
}

const isKept = async (name: string) => !(await readSourceFacts(cells.homeDb.db, name)).isLost

test('a command that is killed goes back by the removal of the cell', async () => {
  const { url, add } = await describeAdd('two')
  for (const [where, statement] of [
    ['home', 'insert into cell as c'],
    ['cell', 'select subscribe_reference('],
  ] as const) {
    await killBehind(add, where, statement)
    expect(await run('remove', 'two')).toEqual([0, 'The cell two is removed.\n'])
    expect(await findCell(cells.homeDb.db, { name: 'two' })).toBeUndefined()
    expect(await isKept('two')).toBe(false)
  }
  expect(await run(...add)).toEqual([0, expect.stringContaining('The cell two is active.')])
  expect(await readReferenceFacts(cells.open(url).db)).toMatchObject({ isSubscribed: true, copying: 0 })
  expect((await run('remove', 'two'))[0]).toBe(0)
}, 900_000)

test('a removal that is killed goes on when it is run again, and home keeps nothing', async () => {
  const { add } = await describeAdd('three')
  expect((await run(...add))[0]).toBe(0)
  const remove = ['remove', 'three']
  await killBehind(remove, 'home', 'delete from cell where name')
  expect(await findCell(cells.homeDb.db, { name: 'three' })).toMatchObject({ state: 'active' })
  // Of the audit entry, in the same transaction; then of the first statement behind its commit.
  await killBehind(remove, 'home', 'insert into audit_log')
  expect(await findCell(cells.homeDb.db, { name: 'three' })).toMatchObject({ state: 'active' })
  await killBehind(remove, 'cell', 'select unsubscribe_reference(')
  expect(await findCell(cells.homeDb.db, { name: 'three' })).toBeUndefined()
  expect(await isKept('three')).toBe(true)
  expect(await run(...remove)).toEqual([0, expect.stringContaining('The cell three is removed.')])
  expect(await isKept('three')).toBe(false)
  expect(await run(...remove)).toEqual([1, expect.stringContaining('unknown_cell')])
}, 900_000)

test('a cell whose database is away is removed while its server still reads from home', async () => {
  const { add } = await describeAdd('four')
  expect((await run(...add))[0]).toBe(0)
  cells.setAway('cell', true)
  expect(await run('remove', 'four')).toEqual([0, expect.stringContaining('drop it, or its subscription')])
  cells.setAway('cell', false)
  expect(await isKept('four')).toBe(false)
}, 900_000)

test('a move and the removal of its cell at the same moment: the second one is refused with a reason', async () => {
  const { add } = await describeAdd('five')
  expect((await run(...add))[0]).toBe(0)
  const { homeDb } = cells
  const client = await homeDb.pool.connect()
  const account = '0190a5c0-0000-7000-8000-0000000000a1'
  try {
    await client.query('begin')
    await client.query(`select state from cell where name = 'five' for share`)
    await client.query(
      `insert into account_move (account, target, version, step, drain_until, created_at, updated_at)
       values ($1, 'five', 1, 'hold', now(), now(), now())`,
      [account],
    )
    const removed = run('remove', 'five')
    await waitFor('a removal that waits', () => isBlocked('for update'))
    await client.query('commit')
    expect(await removed).toEqual([1, expect.stringContaining('cell_has_accounts')])
    await client.query('delete from account_move')

    await client.query('begin')
    await client.query(`delete from cell where name = 'five'`)
    const moved = runCommand(['account', 'move', account, 'five'], { env: buildEnvironment() })
    await waitFor('a move that waits', () => isBlocked('for share'))
    await client.query('commit')
    expect(await moved).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no cell five.') })
  } finally {
    client.release()
  }
}, 900_000)

/** Whether a statement with this text waits for a lock in home. */
async function isBlocked(text: string): Promise<boolean> {
  const { rowCount } = await cells.homeDb.pool.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0`,
    [text],
  )
  return rowCount === 1
}
