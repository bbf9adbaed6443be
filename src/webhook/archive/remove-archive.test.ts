import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { addEnded } from '../../../test/harness/delivery/archived-ledger.ts'
import { STORAGE_KEY, startObjectStore } from '../../../test/harness/fakes/object-store.ts'
import { exportArchive } from './export-archive.ts'
import { type ArchiveQuery, readArchive } from './read-archive.ts'
import { type Removal, removeArchive } from './remove-archive.ts'
import { openFolder } from './storage/folder-storage.ts'
import { openS3 } from './storage/s3-storage.ts'
import type { Storage } from './storage/storage.ts'

const BEFORE = new Date('2026-09-03T00:00:00Z')
const NOW = new Date('2026-09-03T12:00:00Z')

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'signalbox-removal-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

async function exportTo(database: TestDatabase, storage: Storage): Promise<number> {
  const given = { db: database.db, database: 'home', storage, createdBy: 'signalbox version 1.0.0', onFile: () => {} }
  return (await exportArchive({ ...given, now: () => NOW }, BEFORE)).files
}

const remove = (storage: Storage, removal: Removal) =>
  removeArchive(storage, removal, { databases: ['home', 'c1'], onFile: () => {} })

async function find(storage: Storage, query: Partial<ArchiveQuery> = {}): Promise<string[]> {
  const ids: string[] = []
  for await (const { row } of readArchive(storage, { kinds: ['deliveries', 'events'], ...query }))
    ids.push(row.document_id as string)
  return ids.sort()
}

async function useFolder(work: (storage: Storage, folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(root, 'a-'))
  const storage = await openFolder(folder, { isWritten: true })
  await work(storage, folder)
  await storage.close()
}

async function useObjects(work: (storage: Storage) => Promise<void>): Promise<void> {
  await using store = await startObjectStore()
  const settings = { endpoint: store.url, region: 'us-east-1', bucket: 'archive', sessionToken: undefined }
  const deps = { now: () => new Date(), rest: async () => {} }
  const storage = await openS3({ ...settings, ...STORAGE_KEY, prefix: 'a/' }, deps)
  await work(storage)
  await storage.close()
}

/** Two days of two accounts and of none. */
async function fill(database: TestDatabase) {
  const [acme, globex] = [randomUUID(), randomUUID()]
  const ids: Record<'acme' | 'globex' | 'none', string[][]> = { acme: [], globex: [], none: [] }
  for (const [name, account] of [
    ['acme', acme],
    ['globex', globex],
    ['none', null],
  ] as const)
    for (const day of ['2026-09-01', '2026-09-02']) {
      const { id, event } = await addEnded(database, { account, at: `${day}T10:00:00Z` })
      ids[name].push([id, event])
    }
  return { acme, globex, ids }
}

test.each([
  ['a folder', useFolder],
  ['object storage', useObjects],
] as const)('what an account has in %s is removed, alone, and is not exported again', async (_name, use) => {
  await using database = await createTestDatabase()
  const { acme, ids } = await fill(database)
  await use(async (storage) => {
    expect(await exportTo(database, storage)).toBe(12)
    expect(await remove(storage, { account: acme })).toBe(4)
    expect(await find(storage)).toEqual([...ids.globex, ...ids.none].flat().sort())
    expect(await remove(storage, { account: acme })).toBe(0)
    // The ledger has its rows still, and gets more.
    await addEnded(database, { account: acme, at: '2026-09-02T11:00:00Z' })
    expect(await exportTo(database, storage)).toBe(0)
    expect(await find(storage, { account: acme })).toEqual([])
  })
})

test('days before a day are removed of all, or of one account, and later ones stay', async () => {
  await using database = await createTestDatabase()
  const { acme, ids } = await fill(database)
  await useFolder(async (storage) => {
    await exportTo(database, storage)
    expect(await remove(storage, { account: acme, before: '2026-09-02' })).toBe(2)
    expect(await find(storage)).toEqual([...ids.globex, ...ids.none, ids.acme[1]].flat().sort())
    expect(await remove(storage, { before: '2026-09-02' })).toBe(4)
    const later = [ids.acme[1], ids.globex[1], ids.none[1]].flat().sort()
    expect(await find(storage)).toEqual(later)
    // An earlier day brings nothing back.
    expect(await remove(storage, { before: '2026-09-01' })).toBe(0)
    expect(await exportTo(database, storage)).toBe(0)
    expect(await find(storage)).toEqual(later)
  })
})

test('an account without files is not exported from any database either', async () => {
  await using database = await createTestDatabase()
  const account = randomUUID()
  await addEnded(database, { account, at: '2026-09-01T10:00:00Z' })
  await useFolder(async (storage) => {
    expect(await remove(storage, { account })).toBe(0)
    expect(await exportTo(database, storage)).toBe(0)
  })
})

test('a removal that ends anywhere leaves nothing that is read, and the next one removes the rest', async () => {
  await using database = await createTestDatabase()
  const { acme, ids } = await fill(database)
  await useFolder(async (storage, folder) => {
    await exportTo(database, storage)
    for (let steps = 0; ; steps += 1) {
      let left = steps
      const step =
        <Given extends unknown[]>(work: (...given: Given) => Promise<void>) =>
        async (...given: Given) => {
          left -= 1
          if (left < 0) throw new Error('killed')
          await work(...given)
        }
      const breaking = { ...storage, putText: step(storage.putText), remove: step(storage.remove) }
      const isOver = await remove(breaking, { account: acme }).then(
        () => true,
        () => false,
      )
      const found = await find(storage)
      const others = [...ids.globex, ...ids.none].flat()
      expect(others.filter((id) => !found.includes(id))).toEqual([])
      if (isOver) break
      expect(steps).toBeLessThan(20)
    }
    expect(await find(storage, { account: acme })).toEqual([])
    const names = await readdir(folder, { recursive: true })
    expect(names.filter((name) => name.includes(`owner=${acme}`))).toEqual([])
  })
})
