import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
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

  expect((await run(['drain', 'one'])).code).toBe(0)
  expect((await run(['acknowledge', 'one'])).code).toBe(0)
  expect((await run(['remove', 'one'])).stdout).toContain('The cell one is removed.')
  expect((await run(['remove', 'one'])).stderr).toContain('unknown_cell')
  expect((await readAudit()).map(({ action }) => action)).toEqual([
    ...['cell.add', 'cell.drain', 'cell.acknowledge', 'cell.remove'],
  ])
  expect((await readAudit())[0].detail).toMatchObject({ command: 'cell add', cell: 'one', actor: 'command line' })
})
