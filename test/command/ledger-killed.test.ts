import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readArchive } from '../../src/webhook/archive/read-archive.ts'
import { openFolder } from '../../src/webhook/archive/storage/folder-storage.ts'
import { openS3 } from '../../src/webhook/archive/storage/s3-storage.ts'
import type { Storage } from '../../src/webhook/archive/storage/storage.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { addEnded } from '../harness/delivery/archived-ledger.ts'
import { STORAGE_KEY, startObjectStore } from '../harness/fakes/object-store.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const KILL_AT = join(PROJECT_ROOT, 'test', 'harness', 'process', 'kill-at-step.ts')

/** Deliveries, with their events, of an account on two days and of none: six files. */
async function fill(database: TestDatabase): Promise<string[]> {
  const account = randomUUID()
  const rows = [
    { account, at: '2026-09-01T10:00:00Z', earlier: 1 },
    { account, at: '2026-09-01T10:00:01Z' },
    { account, at: '2026-09-02T10:00:00Z' },
    { at: '2026-09-01T10:00:00Z' },
  ]
  const added = []
  for (const row of rows) added.push(await addEnded(database, row))
  return added.flatMap(({ id, event }) => [id, event]).sort()
}

/** Starts an export when the one before has ended for PostgreSQL too. */
async function startExport(
  database: TestDatabase,
  { to, env = {}, killAt }: { to: string; env?: Record<string, string>; killAt?: number },
): Promise<TestProcess> {
  const isFree = async () =>
    (await database.pool.query(`select from pg_locks where locktype = 'advisory' and objid = 7320118`)).rowCount === 0
  await waitFor('the lock of exports', isFree)
  return startProcess({
    command: process.execPath,
    args: [
      ...(killAt === undefined ? [] : ['--import', KILL_AT]),
      ...[await bundleProgram(), 'ledger', 'export', '--before', '2026-09-03', '--to', to],
    ],
    env: {
      ...buildServiceEnvironment(database.connectionString),
      ...env,
      ...(killAt !== undefined && { KILL_AT: String(killAt) }),
    },
  })
}

async function readIds(storage: Storage): Promise<string[]> {
  const ids: string[] = []
  for await (const { row } of readArchive(storage, { kinds: ['deliveries', 'events'] }))
    ids.push(row.document_id as string)
  return ids.sort()
}

/** What is archived is whole at any time, and each row there is once. */
async function expectWhole(storage: Storage, all: readonly string[]): Promise<void> {
  const ids = await readIds(storage)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !all.includes(id))).toEqual([])
}

const namedBy = (manifests: readonly string[]) =>
  manifests.flatMap((text) => JSON.parse(text).days.flatMap((day: { files: { file: string }[] }) => day.files))

test('an export to a folder that is killed at any step of its files goes on, and has each row once', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const all = await fill(database)
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-killed-'))
  const storage = await openFolder(folder, { isWritten: false })
  let kills = 0
  for (let isOver = false; !isOver; ) {
    await using run = await startExport(database, { to: folder, killAt: kills + 1 })
    const { signal, code } = await run.ended
    isOver = signal === null
    if (isOver) expect(code).toBe(0)
    else kills += 1
    await expectWhole(storage, all)
  }
  expect(kills).toBeGreaterThan(4)
  expect(await readIds(storage)).toEqual(all)
  const names = (await readdir(folder, { recursive: true })).filter((name) => /\.(parquet|json)$/.test(name)).sort()
  expect(names.filter((name) => name.startsWith('.unfinished'))).toEqual([])
  const manifests = names.filter((name) => name.endsWith('.json'))
  const texts = await Promise.all(manifests.map((name) => readFile(join(folder, name), 'utf8')))
  expect(names.filter((name) => name.endsWith('.parquet'))).toEqual(
    namedBy(texts)
      .map(({ file }: { file: string }) => file)
      .sort(),
  )
  await rm(folder, { recursive: true })
}, 300_000)

test('an export to object storage that is killed at any object goes on, and has each row once', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const all = await fill(database)
  let left = 0
  let running: TestProcess | undefined
  let isStored = false
  await using store = await startObjectStore({
    beforePut: async () => {
      left -= 1
      if (left !== 0) return true
      await running?.kill()
      return isStored
    },
  })
  const deps = { now: () => new Date(), rest: async () => {} }
  const settings = { endpoint: store.url, region: 'us-east-1', bucket: 'archive', sessionToken: undefined }
  const storage = await openS3({ ...settings, ...STORAGE_KEY, prefix: 'a/' }, deps)
  const env = {
    AWS_ACCESS_KEY_ID: STORAGE_KEY.accessKeyId,
    AWS_SECRET_ACCESS_KEY: STORAGE_KEY.secretAccessKey,
    AWS_ENDPOINT_URL_S3: store.url,
  }
  let kills = 0
  for (let isOver = false; !isOver; ) {
    left = kills + 1
    isStored = kills % 2 === 1
    await using run = await startExport(database, { to: 's3://archive/a', env })
    running = run
    const { signal, code } = await run.ended
    isOver = signal === null
    if (isOver) expect(code).toBe(0)
    else kills += 1
    await expectWhole(storage, all)
  }
  expect(kills).toBeGreaterThan(2)
  expect(await readIds(storage)).toEqual(all)
  const manifests = [...store.objects].filter(([name]) => name.endsWith('.json')).map(([, text]) => text.toString())
  expect([...store.objects.keys()].filter((name) => name.endsWith('.parquet')).sort()).toEqual(
    namedBy(manifests)
      .map(({ file }: { file: string }) => `a/${file}`)
      .sort(),
  )
  await storage.close()
}, 300_000)
