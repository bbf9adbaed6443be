import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { addEnded } from '../harness/delivery/archived-ledger.ts'
import { type ObjectStore, STORAGE_KEY, startObjectStore } from '../harness/fakes/object-store.ts'
import { type GuideShell, listBlocks, openGuideShell } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

/** The blocks of docs/operations/ledger.md as they stand, but for the storage, and the outside reader that they name. */

const blocks = listBlocks(await readFile(join(PROJECT_ROOT, 'docs/operations/ledger.md'), 'utf8'))
const blockWith = (part: string) => blocks.find(({ text }) => text.includes(part))?.text ?? ''

let database: TestDatabase
let store: ObjectStore
let shell: GuideShell
const account = randomUUID()
let done: { id: string; event: string; webhook: string }
let failed: { id: string; event: string; webhook: string }

beforeAll(async () => {
  database = await createTestDatabase({ content: 'prepared' })
  store = await startObjectStore()
  shell = await openGuideShell({ ...buildServiceEnvironment(database.connectionString), LOG_LEVEL: 'warn' })
  done = await addEnded(database, { account, at: '2026-09-01T10:00:00.123Z', earlier: 2 })
  failed = await addEnded(database, { account, at: '2026-09-02T10:00:00Z', status: 'failed' })
  await writeFile(join(shell.checkout, 'storage.key'), `${STORAGE_KEY.secretAccessKey}\n`)
  await shell.run(`set -u; EVENT=${done.event}`)
  await shell.install()
})
afterAll(async () => {
  await shell?.[Symbol.asyncDispose]()
  await store?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

test('the commands of the page export to a folder and to object storage, and find an event', async () => {
  const exported = await shell.run(blockWith('--to ./archive'))
  expect(exported).toContain(`deliveries/database=home/owner=${account}/day=2026-09-01/0.parquet: 1 rows`)
  expect(exported).toMatch(/^4 rows in 4 new files in \.\/archive, of home\.$/m)
  expect(await shell.run(blockWith('--to ./archive'))).toMatch(/^0 rows in 0 new files/m)

  const found = await shell.run(blockWith('--event "$EVENT" --json'))
  const rows = found.split('\n').filter((line) => line.startsWith('{'))
  expect(rows.map((line) => JSON.parse(line))).toMatchObject([
    { kind: 'delivery', database: 'home', document_id: done.id, attempts: 3, attempts_log: [{}, {}, { attempt: 3 }] },
    { kind: 'event', document_id: done.event, account },
  ])

  await shell.run(blockWith('s3://').replace('https://storage.example.com', store.url))
  const files = [...store.objects.keys()].filter((name) => name.endsWith('.parquet'))
  expect(files).toHaveLength(4)
  expect(files).toContain(`signalbox/events/database=home/owner=${account}/day=2026-09-02/0.parquet`)
  const lines = await shell.run(`npx signalbox ledger read --from s3://archive/signalbox --webhook ${failed.webhook}`)
  expect(lines).toContain(`2026-09-02T10:00:00.000Z  ${failed.id}  invoice.paid  ${account}  failed after 1`)

  const { rows: audit } = await database.pool.query(
    `select detail from audit_log where action = 'ledger.export' order by created_at`,
  )
  expect(audit.map(({ detail }) => [detail.to, detail.rows])).toEqual([
    ['./archive', 4],
    ['./archive', 0],
    ['s3://archive/signalbox/', 4],
  ])
})

const probe = spawnSync('python3', ['-c', 'import pyarrow'], { encoding: 'utf8' })

test('PyArrow reads the files as the page says, with their types and lists', async () => {
  if (probe.status !== 0) {
    process.stdout.write(
      `PyArrow is not on this machine: ${probe.error?.message ?? probe.stderr.trim().split('\n').at(-1)}\n`,
    )
    expect(probe.error ?? probe.stderr).toBeTruthy()
    return
  }
  await writeFile(join(shell.checkout, 'block.py'), blockWith('pyarrow.dataset'))
  const { stdout, stderr, status } = spawnSync('python3', ['block.py'], { cwd: shell.checkout, encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`'document_id': '${failed.id}'`)
  expect(stdout).not.toContain(done.id)
  expect(stdout).toContain(
    "'attempts_log': [{'attempt': 1, 'trigger': 'schedule', 'started_at': datetime.datetime(2026, 9, 2, 10, 0",
  )
  const types = spawnSync(
    'python3',
    ['-c', 'import pyarrow.dataset as d; print(d.dataset("archive/events", partitioning="hive").schema)'],
    { cwd: shell.checkout, encoding: 'utf8' },
  )
  expect(types.stdout).toMatch(/^created_at: timestamp\[ms, tz=UTC\] not null$/m)
  expect(types.stdout).toMatch(/^is_purge: bool not null$/m)
})
