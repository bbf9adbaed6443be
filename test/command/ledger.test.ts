import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CellsUnderTest, startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import { addEnded } from '../harness/delivery/archived-ledger.ts'
import { startObjectStore } from '../harness/fakes/object-store.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

let cells: CellsUnderTest
let folder: string
beforeAll(async () => {
  cells = await startCellsUnderTest()
  folder = await mkdtemp(join(tmpdir(), 'signalbox ledger '))
})
afterAll(async () => {
  await cells?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const run = (args: string[], env: Record<string, string> = {}) =>
  runCommand(['ledger', ...args], { env: { ...buildServiceEnvironment(cells.home), ...env } })

const exportTo = (to: string, env: Record<string, string> = {}, before = '2026-09-03') =>
  run(['export', '--before', before, '--to', to], env)

test('home and its cells are exported, one export at a time, and read without a database', async () => {
  const file = join(folder, 'cell.url')
  await writeFile(file, cells.cell)
  const log = { EVENT_LOG_URL: 'nats://127.0.0.1:1' }
  const added = await runCommand(['cell', 'add', 'one', '--url-file', file], {
    env: { ...buildServiceEnvironment(cells.home), ...log },
  })
  expect([added.code, added.stderr]).toEqual([0, ''])
  const account = randomUUID()
  await addEnded(cells.homeDb, { account, at: '2026-09-01T10:00:00Z' })
  const inCell = await addEnded(cells.open(cells.cell), { account, at: '2026-09-02T10:00:00Z' })

  const client = await cells.homeDb.pool.connect()
  try {
    await client.query('select pg_advisory_lock(7320118)')
    const refused = await exportTo(folder)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('export_running')])
    await client.query('select pg_advisory_unlock(7320118)')
  } finally {
    client.release()
  }
  const exported = await exportTo(folder)
  expect([exported.code, exported.stderr]).toEqual([0, ''])
  expect(exported.stdout).toContain('of home, one.')
  expect((await exportTo(folder)).stdout).toMatch(/^0 rows in 0 new files/)

  const read = await runCommand(['ledger', 'read', '--from', folder, '--account', account, '--json'])
  expect([read.code, read.stderr]).toEqual([0, ''])
  const rows = read.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(rows.map(({ kind, database }) => `${kind} ${database}`).sort()).toEqual([
    'delivery home',
    'delivery one',
    'event home',
    'event one',
  ])
  const one = await runCommand(['ledger', 'read', '--from', folder, '--delivery', inCell.id])
  expect(one.stdout).toContain(`${inCell.id}  invoice.paid  ${account}  success after 1`)
  const some = await runCommand(['ledger', 'read', '--from', folder, '--limit', '1'])
  expect([some.code, some.stderr]).toEqual([1, 'There are more rows than 1. Give a narrower range, or --limit.\n'])
  expect(some.stdout.trim().split('\n')).toHaveLength(1)
})

test('an account is removed from the places of home and its cells, not beside an export, and is audited', async () => {
  const place = join(folder, 'removed')
  const account = randomUUID()
  const one = await addEnded(cells.homeDb, { account, at: '2026-09-01T10:00:00Z' })
  const two = await addEnded(cells.open(cells.cell), { account, at: '2026-09-02T10:00:00Z' })
  await exportTo(place)
  const read = async () => (await run(['read', '--from', place, '--account', account])).stdout
  expect(await read()).toContain(one.id)
  expect(await read()).toContain(two.id)
  const client = await cells.homeDb.pool.connect()
  await client.query('select pg_advisory_lock(7320118)')
  const refused = await run(['remove', '--from', place, '--account', account])
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('export_running')])
  await client.query('select pg_advisory_unlock(7320118)')
  client.release()
  const removed = await run(['remove', '--from', place, '--account', account])
  expect([removed.code, removed.stderr]).toEqual([0, ''])
  expect(removed.stdout).toContain(`4 files removed from ${place}.`)
  expect(await read()).toBe('')
  await exportTo(place)
  expect(await read()).toBe('')
  const { rows } = await cells.homeDb.pool.query(`select detail from audit_log where action = 'ledger.remove'`)
  expect(rows).toEqual([{ detail: expect.objectContaining({ from: place, account, files: 4 }) }])
})

test('bad arguments and places are refused with what to give, and nothing is written', async () => {
  const place = join(folder, 'none')
  const options = ['--from', place]
  for (const [args, sentence] of [
    [['export', '--before', '2026-02-30', '--to', place], /a day of UTC like/],
    [['export', '--before', 'yesterday', '--to', place], /a day of UTC like/],
    [['export', '--before', '9999-01-01', '--to', place], /before_too_late/],
    [['export'], /--to/],
    [['export', '--before', '2026-09-01', '--to', 's3://archive/x'], /credentials_missing/],
    [['read', '--from', 's3://Archive/x'], /place_invalid/],
    [['remove', ...options], /Give --account, --before, or both/],
    [['remove', ...options, '--before', '9999-01-01'], /must not be in the future/],
    [['remove', ...options, '--account', "x' or 1"], /a document_id/],
    [['read', ...options, '--account', 'x'.repeat(1024 * 1024)], /a document_id/],
    [['read', ...options, '--since', '2026-09-01T25:00:00Z'], /an instant of UTC/],
    [['read', ...options, '--limit', '0'], /a whole number from 1/],
  ] as const) {
    const { code, stderr } = await run([...args])
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)])
  }
  const secrets = { AWS_ACCESS_KEY_ID: 'AKIDHIDDEN', AWS_SECRET_ACCESS_KEY: 'hidden-secret' }
  await using store = await startObjectStore()
  const env = { ...secrets, AWS_ENDPOINT_URL_S3: store.url }
  const { stdout, stderr } = await run(['read', '--from', 's3://archive/x'], env)
  expect(stderr).toMatch(/403 InvalidAccessKeyId.*storage_refused/)
  expect(stdout + stderr).not.toMatch(/hidden|HIDDEN/)
  expect((await run(['read', ...options])).stdout).toBe('')
  expect(await readdir(folder)).not.toContain('none')
})
