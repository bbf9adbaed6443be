import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ObjectStore, STORAGE_KEY, startObjectStore } from '../../../../test/harness/fakes/object-store.ts'
import { digestFile } from './folder-storage.ts'
import { openStorage, parsePlace, type StorageEnvironment } from './open-storage.ts'
import type { Storage } from './storage.ts'

const NOW = new Date('2026-09-03T12:00:00.250Z')

async function open(
  store: ObjectStore,
  environment: StorageEnvironment = {},
  place = 's3://archive/signalbox/eu',
): Promise<Storage & AsyncDisposable & { rests: number[] }> {
  const rests: number[] = []
  const storage = await openStorage(place, {
    environment: {
      AWS_ACCESS_KEY_ID: STORAGE_KEY.accessKeyId,
      AWS_SECRET_ACCESS_KEY: STORAGE_KEY.secretAccessKey,
      AWS_ENDPOINT_URL_S3: store.url,
      ...environment,
    },
    isWritten: true,
    now: () => NOW,
    rest: async (ms) => void rests.push(ms),
  })
  return { ...storage, rests, [Symbol.asyncDispose]: () => storage.close() }
}

async function put(storage: Storage, name: string, bytes: Buffer): Promise<void> {
  const path = join(storage.workDir, 'given')
  await writeFile(path, bytes)
  await storage.put(name, path, await digestFile(path))
}

const listAll = (storage: Storage, prefix: string) => Array.fromAsync(storage.list(prefix))

test('files are stored, listed page by page, and read in ranges, with signatures that hold', async () => {
  await using store = await startObjectStore()
  await using storage = await open(store)
  expect(storage.place).toBe('s3://archive/signalbox/eu/')
  const bytes = Buffer.from('0123456789'.repeat(1_000))
  await put(storage, 'deliveries/database=home/owner=none/day=2026-09-01/0.parquet', bytes)
  for (const name of ['a', 'b', 'c', 'd', 'e']) await storage.putText(`manifest/${name}.json`, `text of ${name}`)
  store.objects.set('other/manifest/x.json', Buffer.from('not ours'))
  expect([...store.objects.keys()][0]).toBe('signalbox/eu/deliveries/database=home/owner=none/day=2026-09-01/0.parquet')
  expect(await listAll(storage, 'manifest/')).toEqual(['a', 'b', 'c', 'd', 'e'].map((name) => `manifest/${name}.json`))
  expect(await storage.readText('manifest/b.json', 100)).toBe('text of b')
  expect(await storage.readText('manifest/z.json', 100)).toBeUndefined()
  await expect(storage.readText('manifest/b.json', 8)).rejects.toThrow(/file_damaged/)
  const file = 'deliveries/database=home/owner=none/day=2026-09-01/0.parquet'
  expect(Buffer.from(await storage.readRange(file, 5, 15)).toString()).toBe('5678901234')
  await expect(storage.readRange(file, 9_995, 10_005)).rejects.toThrow(/file_damaged/)
  await expect(storage.readRange('missing.parquet', 0, 4)).rejects.toThrow(/file_missing/)
  expect((await storage.digest(file)).bytes).toBe(10_000)
  expect(storage.rests).toEqual([])
})

test('what passes is tried again, and what does not ends with the code of the storage', async () => {
  await using store = await startObjectStore()
  await using storage = await open(store)
  store.fail({ kind: 'status', status: 503, times: 2, on: 'PUT' })
  await put(storage, 'x/0.parquet', Buffer.from('whole'))
  expect(storage.rests).toEqual([250, 1_000])
  expect(store.objects.get('signalbox/eu/x/0.parquet')?.toString()).toBe('whole')
  store.fail({ kind: 'status', status: 503, times: 4 })
  await expect(storage.digest('x/0.parquet')).rejects.toThrow(
    'The object storage answered 503 SlowDown to GET signalbox/eu/x/0.parquet. (storage_refused',
  )
  store.fail({ kind: 'status', status: 403, times: 1 })
  const before = store.requests.length
  await expect(storage.digest('x/0.parquet')).rejects.toThrow(/answered 403/)
  expect(store.requests.length).toBe(before + 1)
  store.fail({ kind: 'reset', times: 1 })
  await expect(storage.digest('x/0.parquet')).rejects.toThrow(/storage_unreachable/)
  expect((await storage.digest('x/0.parquet')).bytes).toBe(5)
})

test('wrong credentials, an unknown bucket and a storage that is away are told apart, without a secret', async () => {
  await using store = await startObjectStore()
  const messages: string[] = []
  const tryOn = async (environment: StorageEnvironment, place?: string) => {
    await using storage = await open(store, environment, place)
    const failure = await storage.readText('manifest/a.json', 10).then(
      () => undefined,
      (error: Error) => error.message,
    )
    messages.push(failure ?? '')
    return failure
  }
  const wrong = { AWS_SECRET_ACCESS_KEY: 'another-secret' }
  expect(await tryOn(wrong)).toMatch(/answered 403 SignatureDoesNotMatch/)
  expect(await tryOn({ AWS_REGION: 'eu-central-1' })).toMatch(/answered 403/)
  expect(await tryOn({}, 's3://another/x')).toMatch(/answered 404 NoSuchBucket/)
  expect(await tryOn({ AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' })).toMatch(/storage_unreachable/)
  expect(messages.join('')).not.toMatch(/secret-of|another-secret|StringToSign/)
})

test('a place that is none, missing credentials and a malformed endpoint are refused', async () => {
  await using store = await startObjectStore()
  expect(parsePlace('/var/archive')).toBeUndefined()
  expect(parsePlace('archive')).toBeUndefined()
  expect(parsePlace('s3://archive')).toEqual({ bucket: 'archive', prefix: '' })
  expect(parsePlace('s3://archive/a//b/')).toEqual({ bucket: 'archive', prefix: 'a/b/' })
  for (const place of [
    's3://',
    's3://A/b',
    's3://archive/a b',
    's3://archive/../b',
    's3://archive/a/.',
    'gs://archive/x',
    `s3://archive/${'a/'.repeat(500_000)}`,
  ])
    expect(() => parsePlace(place)).toThrow(/place_invalid/)
  for (const missing of [{ AWS_SECRET_ACCESS_KEY: '' }, { AWS_ACCESS_KEY_ID: '' }])
    await expect(open(store, missing)).rejects.toThrow(/credentials_missing/)
  await using secure = await open(store, { AWS_ENDPOINT_URL_S3: 'https://storage.example.com' })
  expect(secure.place).toBe('s3://archive/signalbox/eu/')
  for (const url of [
    'ftp://x',
    'https://user:secret-of-url@x',
    'https://:secret-of-url@x',
    'https://x/?a=b',
    'https://x/#a',
    'x',
  ])
    await expect(open(store, { AWS_ENDPOINT_URL_S3: url })).rejects.toThrow(/must be a URL.*place_invalid/)
  await expect(open(store, { AWS_REGION: 'a/b' })).rejects.toThrow(/place_invalid/)
})
