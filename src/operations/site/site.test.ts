import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listScriptHashes, sealSite } from '../../../site/content/seal.ts'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'

const PAGE = '<!doctype html><script>inline()</script><script src="/docs/site/a.js"></script><p>Guide'

let folder: string
let app: TestApp

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox site '))
  const built = join(folder, 'built')
  await mkdir(join(built, 'guides', 'webhooks'), { recursive: true })
  await mkdir(join(built, '_astro'))
  await writeFile(join(built, 'index.html'), '<!doctype html><p>Start')
  await writeFile(join(built, '404.html'), '<!doctype html><p>Nothing here')
  await writeFile(join(built, 'guides', 'webhooks', 'index.html'), PAGE)
  await writeFile(join(built, '_astro', 'a.hash.js'), 'export {}')
  await writeFile(join(built, 'picture.png'), Buffer.from([137, 80, 78, 71]))
  await sealSite(built, join(folder, 'service'))
  await writeFile(join(folder, 'service', 'secret.txt'), 'of no manifest')
  app = await createTestApp({ siteFolder: join(folder, 'service') })
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const get = (url: string, headers: Record<string, string> = {}) =>
  app.app.server.inject({ method: 'GET', url, headers })

test('a page is sent with Brotli to who takes it, and in plain to others', async () => {
  const packed = await get('/docs/site/guides/webhooks/', { 'accept-encoding': 'gzip, br' })
  expect(packed.headers).toMatchObject({ 'content-encoding': 'br', 'content-type': 'text/html; charset=utf-8' })
  expect(brotliDecompressSync(packed.rawPayload).toString()).toBe(PAGE)
  const plain = await get('/docs/site/guides/webhooks/')
  expect(plain.headers['content-encoding']).toBeUndefined()
  expect(plain.body).toBe(PAGE)
  expect(plain.headers.vary).toBe('accept-encoding')
})

test('a path without its slash leads to the page, and a file of no page keeps its own type', async () => {
  expect(await get('/docs/site')).toMatchObject({ statusCode: 308, headers: { location: '/docs/site/' } })
  const redirected = await get('/docs/site/guides/webhooks')
  expect(redirected).toMatchObject({ statusCode: 308, headers: { location: '/docs/site/guides/webhooks/' } })
  expect((await get('/docs/site/')).body).toContain('Start')
  expect((await get('/docs/site/picture.png')).headers['content-type']).toBe('image/png')
})

test.each([
  '/docs/site/nothing/',
  '/docs/site/secret.txt',
  '/docs/site/manifest.json',
  '/docs/site/%2e%2e/service/secret.txt',
  '/docs/site/..%2f..%2fetc/passwd',
  '/docs/site/__proto__',
  '/docs/site/constructor/',
])('%s opens no file that the manifest does not name', async (url) => {
  const answer = await get(url)
  expect(answer.statusCode).toBeGreaterThanOrEqual(400)
  expect(answer.statusCode).toBeLessThan(500)
  expect(answer.body).not.toContain('of no manifest')
})

test('only the scripts of the build run in its pages, and no page elsewhere frames them', async () => {
  const policy = String((await get('/docs/site/')).headers['content-security-policy'])
  const [hash] = listScriptHashes(PAGE)
  expect(policy).toContain(`script-src 'self' 'wasm-unsafe-eval' '${hash}';`)
  expect(policy).toContain("frame-ancestors 'none'")
  expect((await get('/docs/site/nothing/')).headers['content-security-policy']).toBe(policy)
})

test('a file is asked for once: by its tag, or for good where its name changes with it', async () => {
  const { etag } = (await get('/docs/site/')).headers
  expect(await get('/docs/site/', { 'if-none-match': String(etag) })).toMatchObject({ statusCode: 304, body: '' })
  expect((await get('/docs/site/_astro/a.hash.js')).headers['cache-control']).toBe(
    'public, max-age=31536000, immutable',
  )
})

test('the reference leads to the site where there is one', async () => {
  expect((await get('/docs')).body).toContain('<a href="/docs/site/">Guides and concepts</a>')
  await using without = await createTestApp()
  const inject = (url: string) => without.app.server.inject({ method: 'GET', url })
  expect((await inject('/docs')).body).not.toContain('/docs/site')
  expect((await inject('/docs/site/')).statusCode).toBe(404)
})
