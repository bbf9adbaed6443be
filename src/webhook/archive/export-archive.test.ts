import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { addEnded } from '../../../test/harness/delivery/archived-ledger.ts'
import { checkBefore, type ExportDeps, exportArchive, findLatestBefore } from './export-archive.ts'
import type { Manifest } from './manifest.ts'
import { type ArchiveQuery, kindsOf, readArchive } from './read-archive.ts'
import { openFolder } from './storage/folder-storage.ts'
import type { Storage } from './storage/storage.ts'

const BEFORE = new Date('2026-09-03T00:00:00Z')
const NOW = new Date('2026-09-03T12:00:00Z')

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'signalbox-archive-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const makeFolder = () => mkdtemp(join(root, 'a-'))

async function runExport(
  database: TestDatabase,
  storage: Storage,
  { now = NOW, before = BEFORE, ...rest }: Partial<Omit<ExportDeps, 'now'>> & { now?: Date; before?: Date } = {},
): Promise<string[]> {
  const files: string[] = []
  const onFile = ({ file }: { file: string }) => void files.push(file)
  const given = { db: database.db, database: 'home', storage, createdBy: 'signalbox version 1.0.0' }
  const totals = await exportArchive({ ...given, now: () => now, onFile, ...rest }, before)
  expect(totals.files).toBe(files.length)
  return files
}

async function exportTo(database: TestDatabase, folder: string, options: Parameters<typeof runExport>[2] = {}) {
  const storage = await openFolder(folder, { isWritten: true })
  try {
    return await runExport(database, storage, options)
  } finally {
    await storage.close()
  }
}

async function find(folder: string, query: Omit<ArchiveQuery, 'kinds'> & Partial<ArchiveQuery> = {}) {
  const storage = await openFolder(folder, { isWritten: false })
  const found = []
  for await (const one of readArchive(storage, { kinds: kindsOf(query), ...query })) found.push(one)
  return found
}

const idsOf = (found: { row: Readonly<Record<string, unknown>> }[]) => found.map(({ row }) => row.document_id)

async function readManifest(folder: string, kind: string, owner: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'manifest', kind, 'home', `${owner}.json`), 'utf8'))
}

test('deliveries with their attempts, and events, are archived by account and day, and found again', async () => {
  await using database = await createTestDatabase()
  const [acme, globex] = [randomUUID(), randomUUID()]
  const first = await addEnded(database, { account: acme, at: '2026-09-01T10:00:00.123Z', earlier: 2 })
  const second = await addEnded(database, { account: acme, at: '2026-09-02T23:59:59.999Z', status: 'failed' })
  const other = await addEnded(database, { account: globex, at: '2026-09-01T10:00:00Z' })
  const none = await addEnded(database, { at: '2026-09-01T10:00:00Z' })
  const today = await addEnded(database, { account: acme, at: '2026-09-03T00:00:00Z' })
  const folder = await makeFolder()
  const files = await exportTo(database, folder)
  expect(files).toHaveLength(8)
  expect(files).toContain(`deliveries/database=home/owner=${acme}/day=2026-09-02/0.parquet`)
  expect(files).toContain('events/database=home/owner=none/day=2026-09-01/0.parquet')

  const all = await find(folder)
  expect(idsOf(all).sort()).toEqual([first, second, other, none].flatMap(({ id, event }) => [id, event]).sort())
  expect(idsOf(all)).not.toContain(today.id)
  const [one, ...more] = await find(folder, { delivery: first.id })
  expect(more).toEqual([])
  expect(one).toEqual({
    kind: 'deliveries',
    database: 'home',
    row: {
      document_id: first.id,
      ...{ webhook: first.webhook, event_id: first.event, event: 'invoice.paid', account: acme, status: 'success' },
      ...{
        attempts: 3,
        last_status_code: 200,
        last_error: null,
        last_duration_ms: 12,
        is_test: false,
        is_replay: false,
      },
      ...Object.fromEntries(
        ['last_attempt_at', 'delivered_at', 'ended_at', 'created_at', 'updated_at'].map((name) => [
          name,
          new Date('2026-09-01T10:00:00.123Z'),
        ]),
      ),
      attempts_log: [
        ...[1, 2].map((attempt) => expect.objectContaining({ attempt, status_code: 500, total_ms: 7.5, dns_ms: null })),
        expect.objectContaining({ attempt: 3, trigger: 'schedule', error_class: null, first_byte_ms: 9.25 }),
      ],
    },
  })
  expect(idsOf(await find(folder, { event: second.event })).sort()).toEqual([second.id, second.event].sort())
  expect(idsOf(await find(folder, { webhook: other.webhook }))).toEqual([other.id])
  expect(idsOf(await find(folder, { account: null, kinds: ['deliveries'] }))).toEqual([none.id])
  const range = { account: acme, since: new Date('2026-09-02T12:00:00Z'), until: new Date('2026-09-03T00:00:00Z') }
  expect(idsOf(await find(folder, range)).sort()).toEqual([second.id, second.event].sort())
  expect(await find(folder, { ...range, until: new Date('2026-09-02T23:59:59.999Z') })).toEqual([])
})

test('no file has what a receiver answered or a publisher sent beside its event', async () => {
  await using database = await createTestDatabase()
  await addEnded(database, { at: '2026-09-01T10:00:00Z', earlier: 1 })
  const folder = await makeFolder()
  await exportTo(database, folder)
  const texts = JSON.stringify(await find(folder))
  expect(texts).toContain('invoice.paid')
  expect(texts).not.toMatch(/own-secret-echoed|not-for-archives|192\.0\.2\.77|x-own/)
})

test('a second export writes nothing, and a later one what came since, ended late or was replayed', async () => {
  await using database = await createTestDatabase()
  const account = randomUUID()
  const done = await addEnded(database, { account, at: '2026-09-01T10:00:00Z' })
  const waiting = randomUUID()
  await database.pool.query(
    `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, next_attempt_at, created_at,
       updated_at)
     values ($1, $2, $2, 'invoice.paid', $3, 'pending', now(), '2026-09-02T10:00:00Z', '2026-09-02T10:00:00Z')`,
    [waiting, randomUUID(), account],
  )
  const beside = await addEnded(database, { account, at: '2026-09-02T11:00:00Z' })
  const justNow = await addEnded(database, { account, at: '2026-09-02T12:00:00Z', endedAt: '2026-09-03T11:55:00Z' })
  const folder = await makeFolder()
  expect(await exportTo(database, folder)).toHaveLength(4)
  expect(await exportTo(database, folder)).toEqual([])
  const manifest = await readManifest(folder, 'deliveries', account)
  expect(manifest.days.map(({ day, is_closed }) => [day, is_closed])).toEqual([
    ['2026-09-01', true],
    ['2026-09-02', false],
  ])
  const early = await find(folder, { account, kinds: ['deliveries'] })
  expect(idsOf(early).sort()).toEqual([done.id, beside.id].sort())

  await database.pool.query(
    `with gone as (delete from webhook_dispatch_open returning *)
     insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, is_test, created_at,
       updated_at, ended_at)
     select document_id, webhook, event_id, event, account, 'exhausted', 5, false, created_at, $1, $1 from gone`,
    ['2026-09-03T13:00:00Z'],
  )
  await database.pool.query(
    `update webhook_dispatch_ended set attempt_trigger = 'replay', attempts = 9, ended_at = $2 where document_id = $1`,
    [done.id, '2026-09-03T13:00:00Z'],
  )
  const later = await exportTo(database, folder, { now: new Date('2026-09-03T18:00:00Z') })
  expect(later.sort()).toEqual([
    `deliveries/database=home/owner=${account}/day=2026-09-01/1.parquet`,
    `deliveries/database=home/owner=${account}/day=2026-09-02/1.parquet`,
  ])
  const found = await find(folder, { account, kinds: ['deliveries'] })
  expect(idsOf(found).sort()).toEqual([done.id, beside.id, justNow.id, waiting].sort())
  expect(found.find(({ row }) => row.document_id === done.id)?.row).toMatchObject({ attempts: 9, is_replay: true })
  expect(await exportTo(database, folder, { now: new Date('2026-09-03T19:00:00Z') })).toEqual([])
  const closed = await readManifest(folder, 'deliveries', account)
  expect(closed.days.every(({ is_closed }) => is_closed)).toBe(true)
})

test('an interrupted export goes on with the file that is missing, and leaves no part of one', async () => {
  await using database = await createTestDatabase()
  const account = randomUUID()
  const ids: string[] = []
  for (let n = 0; n < 7; n += 1) ids.push((await addEnded(database, { account, at: `2026-09-01T10:00:0${n}Z` })).id)
  const folder = await makeFolder()
  const limits = { pageRows: 1, fileRows: 2 }
  const storage = await openFolder(folder, { isWritten: true })
  let puts = 0
  const breaking: Storage = {
    ...storage,
    put: (...given) => {
      puts += 1
      return puts === 3 ? Promise.reject(new Error('the power is gone')) : storage.put(...given)
    },
  }
  await expect(runExport(database, breaking, { limits })).rejects.toThrow('the power is gone')
  const left = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.parquet'))
  expect(left.filter((name) => !name.startsWith('.unfinished')).sort()).toEqual(
    [0, 1].map((n) => `deliveries/database=home/owner=${account}/day=2026-09-01/${n}.parquet`),
  )
  expect(await find(folder)).toEqual([])
  const files = await exportTo(database, folder, { limits })
  expect(files.filter((name) => name.startsWith('deliveries'))).toHaveLength(4)
  expect(idsOf(await find(folder, { account, kinds: ['deliveries'] })).sort()).toEqual(ids.sort())
  expect(await readdir(folder)).not.toContain('.unfinished')
})

test('an interrupted export of many days writes the last of them again, not those before', async () => {
  await using database = await createTestDatabase()
  const account = randomUUID()
  const at = (day: number) => new Date(Date.UTC(2026, 5, 1 + day)).toISOString()
  for (let day = 0; day < 55; day += 1) await addEnded(database, { account, at: at(day) })
  const folder = await makeFolder()
  const storage = await openFolder(folder, { isWritten: true })
  let puts = 0
  const breaking: Storage = {
    ...storage,
    put: (...given) => {
      puts += given[0].endsWith('.parquet') ? 1 : 0
      return puts === 53 ? Promise.reject(new Error('the power is gone')) : storage.put(...given)
    },
  }
  await expect(runExport(database, breaking)).rejects.toThrow('the power is gone')
  expect((await readManifest(folder, 'deliveries', account)).days).toHaveLength(50)
  const files = await exportTo(database, folder)
  expect(files.filter((name) => name.startsWith('deliveries'))).toHaveLength(5)
  const days = (await readManifest(folder, 'deliveries', account)).days.map(({ day }) => day)
  expect(days).toEqual(Array.from({ length: 55 }, (_, day) => at(day).slice(0, 10)))
})

test('a pass that was interrupted between two stored files goes on behind them', async () => {
  await using database = await createTestDatabase()
  const account = randomUUID()
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) ids.push((await addEnded(database, { account, at: `2026-09-01T10:00:0${n}Z` })).id)
  const folder = await makeFolder()
  await exportTo(database, folder, { limits: { pageRows: 1, fileRows: 2 } })
  const path = join(folder, 'manifest', 'deliveries', 'home', `${account}.json`)
  const manifest = await readManifest(folder, 'deliveries', account)
  const [day] = manifest.days
  const position = { at: '2026-09-01T10:00:01+00:00', id: ids[1] }
  const cut = { ...day, position, is_closed: false, files: day?.files.slice(0, 1) }
  await writeFile(path, JSON.stringify({ ...manifest, days: [cut] }))
  expect(await exportTo(database, folder, { limits: { pageRows: 1, fileRows: 2 } })).toEqual(
    [1, 2].map((n) => `deliveries/database=home/owner=${account}/day=2026-09-01/${n}.parquet`),
  )
  expect(idsOf(await find(folder, { account, kinds: ['deliveries'] })).sort()).toEqual(ids.sort())
})

test('a file that reads back otherwise, a damaged one and a foreign manifest are refused', async () => {
  await using database = await createTestDatabase()
  const { id } = await addEnded(database, { at: '2026-09-01T10:00:00Z' })
  const folder = await makeFolder()
  const storage = await openFolder(folder, { isWritten: true })
  const lying: Storage = {
    ...storage,
    digest: async (name) => ({ ...(await storage.digest(name)), sha256: '0'.repeat(64) }),
  }
  await expect(runExport(database, lying)).rejects.toThrow(/reads back otherwise.*verification_failed/)
  expect(await find(folder)).toEqual([])
  await exportTo(database, folder)
  const file = join(folder, 'deliveries/database=home/owner=none/day=2026-09-01/0.parquet')
  const bytes = await readFile(file)
  for (const broken of [bytes.subarray(0, 40), Buffer.alloc(bytes.length), bytes.fill(255, 4, bytes.length - 8)]) {
    await writeFile(file, broken)
    await expect(find(folder, { delivery: id })).rejects.toThrow(/file_damaged/)
  }
  await rm(file)
  await expect(find(folder, { delivery: id })).rejects.toThrow(/file_missing/)
  const path = join(folder, 'manifest/deliveries/home/none.json')
  const manifest = await readFile(path, 'utf8')
  const foreign = [
    '[]',
    '{',
    manifest.replace('"format":1', '"format":2'),
    manifest.replace('deliveries/database', '../database'),
  ]
  for (const text of [...foreign, 'x'.repeat(1024 * 1024)]) {
    await writeFile(path, text)
    await expect(find(folder)).rejects.toThrow(/manifest_invalid/)
    await expect(exportTo(database, folder)).rejects.toThrow(/manifest_invalid/)
  }
})

test('days that ended less than an hour ago are not exported', () => {
  expect(() => checkBefore(BEFORE, new Date('2026-09-03T00:59:59Z'))).toThrow(/before_too_late/)
  expect(() => checkBefore(BEFORE, new Date('2026-09-03T01:00:00Z'))).not.toThrow()
})

test('without a day those are exported that ended an hour ago', () => {
  expect(findLatestBefore(new Date('2026-09-03T00:59:59.999Z'))).toEqual(new Date('2026-09-02'))
  expect(findLatestBefore(new Date('2026-09-03T01:00:00Z'))).toEqual(new Date('2026-09-03'))
  expect(findLatestBefore(new Date('2026-09-03T23:59:59.999Z'))).toEqual(new Date('2026-09-03'))
})
