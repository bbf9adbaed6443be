import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { type CellsUnderTest, startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

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

/** The commands of cells do not ask the event log, only whether one is set. */
const LOG = { EVENT_LOG_URL: 'nats://127.0.0.1:1' }

async function run(args: string[], env: Record<string, string> = LOG) {
  const end = await runCommand(['cell', ...args], { env: { ...buildServiceEnvironment(cells.home), ...env } })
  for (const url of [cells.home, cells.cell]) {
    expect(end.stdout + end.stderr).not.toContain(new URL(url).password)
    expect(end.stdout + end.stderr).not.toContain(url)
  }
  return end
}

async function write(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

const readAudit = async () =>
  (await cells.homeDb.pool.query(`select action, detail from audit_log where action like 'cell.%' order by created_at`))
    .rows

test('a cell is added, shown, drained and removed, and each change has its audit entry', async () => {
  const file = await write('cell.url', `${cells.cell}\n`)
  expect((await run(['add', 'one', '--url-file', file], {})).stderr).toContain('EVENT_LOG_URL is not set')
  expect((await run(['add', 'One', '--url-file', file])).stderr).toContain('It must be a small letter')
  expect((await run(['add', 'one', '--url-file', join(directory, 'none')])).stderr).toContain('(ENOENT)')
  const wrong = await write('wrong.url', 'http://user:hidden@host/')
  const refused = await run(['add', 'one', '--url-file', wrong])
  expect([refused.code, refused.stderr]).toEqual([1, expect.not.stringContaining('hidden')])
  expect(await readAudit()).toEqual([])

  const added = await run(['add', 'one', '--url-file', file])
  expect([added.code, added.stdout]).toEqual([0, expect.stringContaining('The cell one is active.')])
  expect((await run(['add', 'one', '--url-file', file, '--copy-again'])).code).toBe(0)
  const other = await run(['add', 'two', '--url-file', file])
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('cell_of_another_name')])

  // No process takes in: there is something to do.
  const status = await run(['status'])
  expect(status.code).toBe(1)
  expect(JSON.parse(status.stdout)).toMatchObject({
    databases: [{ name: 'home' }, { name: 'one', state: 'active', is_reachable: true }],
    remedies: [expect.stringContaining('for home'), expect.stringContaining('for one')],
  })
  const doctor = await runCommand(['doctor', '--json'], { env: buildServiceEnvironment(cells.home) })
  expect(doctor.stdout).toContain('cells_broken')
  expect(doctor.stdout).toMatch(/the cell one takes [^,]+, free disk space unknown \(CELL_DISK_BYTES\)/)

  // Commands on what databases keep do it in home and in every cell.
  const everywhere = { env: { ...buildServiceEnvironment(cells.home), ...LOG } }
  const republished = await runCommand(['log', 'republish', '--since', '2026-01-01T00:00:00Z'], everywhere)
  expect([republished.code, republished.stdout]).toEqual([0, expect.stringContaining('of the cells one.')])
  const cell = cells.open(cells.cell)
  for (const { pool } of [cells.homeDb, cell])
    expect((await pool.query('select republish_after from event_log')).rows).toEqual([
      { republish_after: new Date('2026-01-01T00:00:00Z') },
    ])
  const sealed = buildKeyring(['another secret of at least thirty-two characters'], systemRandom).seal('x', 'webhook:1')
  await cell.pool.query(
    `insert into webhook (document_id, url, is_global, secret_encrypted, created_at, updated_at)
     values (gen_random_uuid(), 'https://example.com/', true, $1, now(), now())`,
    [sealed],
  )
  const secrets = await runCommand(['secrets', 'status'], everywhere)
  expect([secrets.code, secrets.stdout]).toEqual([1, expect.stringContaining('one: webhook')])
  expect(secrets.stdout).toContain('1 secrets open under no key')
  await cell.pool.query('delete from webhook')
  expect((await runCommand(['secrets', 'status'], everywhere)).code).toBe(0)
  expect((await runCommand(['log', 'off'], { env: buildServiceEnvironment(cells.home) })).stderr).toContain(
    'There are cells',
  )
  cells.setAway('cell', true)
  const away = await runCommand(['secrets', 'status'], everywhere)
  expect([away.code, away.stderr, away.stdout]).toEqual([
    ...[1, expect.stringContaining('The cell one was left out'), expect.stringContaining('A database was not counted')],
  ])
  cells.setAway('cell', false)

  await cells.homeDb.pool.query('select open_fence()')
  const countFence = async () =>
    (await cells.homeDb.pool.query(`select from pg_trigger where tgname like 'fence%'`)).rowCount
  expect(await countFence()).toBe(7)
  expect((await run(['drain', 'one'])).code).toBe(0)
  expect((await run(['acknowledge', 'one'])).code).toBe(0)
  const writer = await cells.homeDb.pool.connect()
  await writer.query('begin')
  await writer.query('lock table event_occurrence in row exclusive mode')
  const busy = await run(['remove', 'one'])
  expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining('home_busy')])
  await writer.query('rollback')
  writer.release()
  expect(await countFence()).toBe(7)
  expect((await run(['remove', 'one'])).stdout).toContain('The cell one is removed.')
  expect(await countFence()).toBe(0)
  expect((await run(['remove', 'one'])).stderr).toContain('unknown_cell')

  // The whole way back: nothing is left to do.
  const alone = { env: buildServiceEnvironment(cells.home) }
  const off = await runCommand(['log', 'off'], alone)
  expect([off.code, off.stderr]).toEqual([0, ''])
  const after = await run(['status'], {})
  expect([after.code, JSON.parse(after.stdout)]).toMatchObject([0, { databases: [{ name: 'home' }], remedies: [] }])
  expect((await runCommand(['doctor', '--json'], alone)).stdout).not.toMatch(/cells_|event_log_/)

  expect((await readAudit()).map(({ action }) => action)).toEqual([
    ...['cell.add', 'cell.drain', 'cell.acknowledge', 'cell.remove'],
  ])
  expect((await readAudit())[0].detail).toMatchObject({ command: 'cell add', cell: 'one', actor: 'command line' })
})
