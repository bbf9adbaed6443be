import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { digestFile, openFolder } from './folder-storage.ts'

let root: string
let folder: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'signalbox-folder-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'f-'))
})

const open = (isWritten = true, at = folder) => openFolder(at, { isWritten })
const refused = expect.objectContaining({ message: expect.stringContaining('storage_refused') })

async function listAll(storage: Awaited<ReturnType<typeof open>>, prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const name of storage.list(prefix)) found.push(name)
  return found.sort()
}

test('a file has its name once it is whole, and is read by ranges', async () => {
  const storage = await open()
  const path = join(storage.workDir, 'rows')
  await writeFile(path, 'abcdef')
  await storage.put('a/b/0.parquet', path, await digestFile(path))
  expect(await readdir(storage.workDir)).toEqual([])
  expect(Buffer.from(await storage.readRange('a/b/0.parquet', 1, 4)).toString()).toBe('bcd')
  expect(Buffer.from(await storage.readRange('a/b/0.parquet', 0, 6)).toString()).toBe('abcdef')
  expect(await storage.digest('a/b/0.parquet')).toEqual(await digestFile(join(folder, 'a/b/0.parquet')))
  expect((await storage.digest('a/b/0.parquet')).bytes).toBe(6)
})

test('a range beyond the end of a file is one that is damaged, and a file that is not there is missing', async () => {
  const storage = await open()
  await storage.putText('a/0', 'abc')
  await expect(storage.readRange('a/0', 1, 4)).rejects.toMatchObject({ code: 'file_damaged' })
  await expect(storage.readRange('a/1', 0, 1)).rejects.toMatchObject({ code: 'file_missing' })
})

test('a text is read up to its limit', async () => {
  const storage = await open()
  await storage.putText('manifest/a.json', 'abc')
  expect(await storage.readText('manifest/a.json', 3)).toBe('abc')
  await expect(storage.readText('manifest/a.json', 2)).rejects.toMatchObject({ code: 'manifest_invalid' })
  expect(await storage.readText('manifest/b.json', 3)).toBeUndefined()
  await storage.putText('manifest/a.json', 'new')
  expect(await readFile(join(folder, 'manifest/a.json'), 'utf8')).toBe('new')
})

test('files are listed below a folder, by their names', async () => {
  const storage = await open()
  for (const name of ['m/a.json', 'm/x/b.json', 'n/c.json']) await storage.putText(name, '{}')
  expect(await listAll(storage, 'm/')).toEqual(['m/a.json', 'm/x/b.json'])
  expect(await listAll(storage, 'none/')).toEqual([])
})

test('what the system refuses is told with its reason, whatever it is done for', async () => {
  await writeFile(join(folder, 'plain'), 'x')
  await mkdir(join(folder, 'folder.json'))
  const storage = await open()
  const text = join(storage.workDir, 'text')
  await writeFile(text, 'x')
  await expect(open(true, join(folder, 'plain', 'below'))).rejects.toThrow(/plain.below.*ENOTDIR.*storage_refused/)
  await expect(storage.put('plain/0', text, await digestFile(text))).rejects.toEqual(refused)
  await expect(storage.putText('plain/0', 'x')).rejects.toEqual(refused)
  await expect(storage.digest('none')).rejects.toEqual(refused)
  await expect(storage.readText('plain/0', 9)).rejects.toThrow(/plain.0.*ENOTDIR/)
  await expect(storage.readRange('plain/0', 0, 1)).rejects.toEqual(refused)
  // These are opened, and cannot be read.
  await expect(storage.readText('folder.json', 100_000)).rejects.toThrow(/folder.json.*EISDIR.*storage_refused/)
  await expect(storage.readRange('folder.json', 0, 1)).rejects.toThrow(/EISDIR.*storage_refused/)
  await expect(listAll(storage, 'plain/')).rejects.toEqual(refused)
})

test('what an export left unfinished is removed as the folder is opened to write, and as it is closed', async () => {
  const first = await open()
  await writeFile(join(first.workDir, 'rest'), 'x')
  const reader = await open(false)
  await reader.close()
  expect(await readdir(first.workDir)).toEqual(['rest'])
  const second = await open()
  expect(await readdir(second.workDir)).toEqual([])
  await second.close()
  expect(await readdir(folder)).toEqual([])
  // Closed again, after what it removes was removed.
  await second.close()
  const below = await open(true, join(folder, 'a', 'b'))
  expect(await readdir(below.workDir)).toEqual([])
})
