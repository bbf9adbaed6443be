import { execFileSync } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SharedBrowser, shareChromium } from '../../test/browser/chromium.ts'
import { findViolationsInBothSchemes, measureOverflow, NO_VIOLATIONS } from '../../test/browser/page-browser.ts'
import { createTestApp, type TestApp } from '../../test/harness/app/app.ts'

const SITE = join(import.meta.dirname, '..')
const DIST = join(SITE, 'dist')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}

let server: Server
let origin: string
let browser: SharedBrowser
let service: TestApp

beforeAll(async () => {
  // The variables of the test runner would make a build for development, without the search.
  const run = (...command: string[]) =>
    execFileSync(process.execPath, command, {
      cwd: SITE,
      stdio: 'pipe',
      env: { PATH: process.env.PATH, HOME: process.env.HOME },
    })
  run('write-content.ts')
  run(join('..', 'node_modules', 'astro', 'bin', 'astro.mjs'), 'build')
  server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname)
    const file = join(DIST, path.endsWith('/') ? `${path}index.html` : path)
    const found = await stat(file).catch(() => undefined)
    response.writeHead(found?.isFile() ? 200 : 404, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
    })
    if (found?.isFile()) createReadStream(file).pipe(response)
    else response.end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  browser = await shareChromium()
  service = await createTestApp({ env: { CORS_ALLOWED_ORIGINS: origin } })
  await service.app.start()
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
  server?.close()
})

test('every link of every page leads to a page and to a heading that is there', async () => {
  const files = (await readdir(DIST, { recursive: true })).filter((file) => file.endsWith('.html'))
  const pages = new Map<string, { ids: Set<string>; links: string[] }>()
  for (const file of files) {
    const text = await readFile(join(DIST, file), 'utf8')
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id))
    const links = [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'))
    pages.set(`/${file.replace(/index\.html$/, '')}`, { ids, links })
  }
  expect(pages.size).toBeGreaterThan(400)
  const broken: string[] = []
  for (const [page, { links }] of pages)
    for (const link of links) {
      if (/^[a-z]+:/.test(link)) continue
      const { pathname, hash } = new URL(link, `http://site${page}`)
      const target = pages.get(pathname)
      const isFile =
        target !== undefined || (await stat(join(DIST, pathname)).catch(() => undefined))?.isFile() === true
      const anchor = decodeURIComponent(hash.slice(1))
      if (!isFile || (anchor && target && !target.ids.has(anchor))) broken.push(`${page} -> ${link}`)
    }
  expect(broken).toEqual([])
})

const PAGES = [
  '/',
  '/concepts/webhooks/',
  '/guides/webhooks/',
  '/contract/delivery/',
  '/reference/',
  '/reference/webhook/webhook-create/',
  '/events/contract.update/',
  '/errors/not_found/',
  '/configuration/',
]

test.each(PAGES)(
  '%s has no fault that axe finds in light and dark, fits 320 pixels and loads nothing from elsewhere',
  async (path) => {
    const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' })
    const foreign: string[] = []
    page.on('request', (request) => request.url().startsWith(origin) || foreign.push(request.url()))
    await page.goto(origin + path)
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await page.setViewportSize({ width: 320, height: 900 })
    expect(await measureOverflow(page)).toBe(0)
    expect(foreign).toEqual([])
    await giveBack()
  },
)

test('the search finds an error by its code', async () => {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 } })
  await page.goto(origin)
  await page.getByRole('button', { name: 'Search' }).click()
  await page.locator('dialog input').fill('duplicate_not_confirmed')
  await page.getByRole('dialog').getByRole('link', { name: 'duplicate_not_confirmed' }).first().waitFor()
  await giveBack()
})

test('the form of a call sends it to a service, and says what is missing when nothing answers', async () => {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 } })
  await page.goto(`${origin}/reference/webhook/webhook-find-one/`)
  const form = page.locator('signalbox-try-it')
  await form.getByLabel('Service').fill(service.app.baseUrl())
  await form.getByLabel('id').fill('0199a3c4-5d1b-7c44-8a02-6f6f2f0e4b11')
  await form.getByRole('button', { name: 'Send GET' }).click()
  await form.getByText('"code": "unauthenticated"').waitFor()
  await form.getByLabel('Service').fill('http://127.0.0.1:1')
  await form.getByRole('button', { name: 'Send GET' }).click()
  await form.getByText(`name ${origin} in CORS_ALLOWED_ORIGINS`).waitFor()
  await giveBack()
})

test('every page is there as Markdown, and llms.txt lists them', async () => {
  const list = await readFile(join(DIST, 'llms.txt'), 'utf8')
  const links = [...list.matchAll(/\]\((\/[^)]+\.md)\)/g)].map(([, link = '']) => link)
  expect(links.length).toBeGreaterThan(400)
  for (const link of links) expect((await readFile(join(DIST, link), 'utf8')).startsWith('# ')).toBe(true)
})
