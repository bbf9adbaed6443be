import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SITE_PATH } from '../../src/http/reference/docs-page.ts'
import type { SiteManifest } from '../../src/operations/site/site-build.ts'
import { type SharedBrowser, shareChromium } from '../../test/browser/chromium.ts'
import { findViolationsInBothSchemes, measureOverflow, NO_VIOLATIONS } from '../../test/browser/page-browser.ts'
import { createTestApp, type TestApp } from '../../test/harness/app/app.ts'
import { COMPILE_CACHE } from '../../test/harness/process/process.ts'

const SITE = join(import.meta.dirname, '..')

/** The build for the service: its folder, and the texts of its files. */
let folder: string
let manifest: SiteManifest
/** The same pages from another origin, as a web server has them. */
let elsewhere: Server
let elsewhereOrigin: string
let browser: SharedBrowser
let service: TestApp
let origin: string

const read = async (name: string) => {
  const stored = await readFile(join(folder, name))
  return manifest.files[name]?.isCompressed ? brotliDecompressSync(stored) : stored
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox site '))
  const { PATH, HOME } = process.env
  const kept = join(COMPILE_CACHE, '..', 'site')
  const command = [join(SITE, 'build.ts'), '--service', '--out', folder, '--kept', kept]
  // Not at a standstill: connections of this process would be taken for dead.
  const env = { PATH, HOME, NODE_COMPILE_CACHE: COMPILE_CACHE }
  await promisify(execFile)(process.execPath, command, { cwd: SITE, maxBuffer: 64 * 1024 * 1024, env })
  manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  elsewhere = createServer(async (request, response) => {
    const path = new URL(request.url ?? '/', 'http://site').pathname.slice(`${SITE_PATH}/`.length)
    const name = path === '' || path.endsWith('/') ? `${path}index.html` : path
    if (!manifest.files[name]) return response.writeHead(404).end()
    response.writeHead(200, { 'content-type': name.endsWith('.js') ? 'text/javascript' : 'text/html' })
    response.end(await read(name))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => elsewhere.once('listening', resolve))
  elsewhereOrigin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  browser = await shareChromium()
  service = await createTestApp({ siteFolder: folder, env: { CORS_ALLOWED_ORIGINS: elsewhereOrigin } })
  await service.app.start()
  origin = service.app.baseUrl() + SITE_PATH
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
  elsewhere?.close()
  await rm(folder, { recursive: true, force: true })
})

test('each page names the version that it is about', async () => {
  const version = JSON.parse(await readFile(join(SITE, '..', 'package.json'), 'utf8')).version
  const page = (await read('guides/webhooks/index.html')).toString()
  expect(page).toMatch(new RegExp(`class="site-title[^]*?Signalbox ${version.replaceAll('.', '\\.')}\\s*<`))
})

test('every link of every page leads to a page and to a heading that is there', async () => {
  const files = Object.keys(manifest.files).filter((file) => file.endsWith('.html'))
  const pages = new Map<string, { ids: Set<string>; links: string[] }>()
  for (const file of files) {
    const text = (await read(file)).toString()
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id))
    // Icons, styles, scripts and pictures too.
    const named = text.matchAll(/<(?:a|link|script|img) [^>]*(?:href|src)="([^"]+)"/g)
    const links = [...named].map(([, href = '']) => href.replaceAll('&amp;', '&'))
    pages.set(`${SITE_PATH}/${file.replace(/index\.html$/, '')}`, { ids, links })
  }
  expect(pages.size).toBeGreaterThan(400)
  const broken: string[] = []
  for (const [page, { links }] of pages)
    for (const link of links) {
      if (/^[a-z]+:/.test(link)) continue
      const { pathname, hash } = new URL(link, `http://site${page}`)
      const target = pages.get(pathname)
      const isFile = target !== undefined || pathname.slice(`${SITE_PATH}/`.length) in manifest.files
      const anchor = decodeURIComponent(hash.slice(1))
      if (!isFile || (anchor && target && !target.ids.has(anchor))) broken.push(`${page} -> ${link}`)
    }
  expect(broken).toEqual([])
})

/** The frame of a page: its head, and the list of all pages. */
const FRAME = ['header.header', 'nav.sidebar']

/** The second has the frame, which is examined with it alone; the first has none of the list. */
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
    page.on('console', (message) => message.type() === 'error' && foreign.push(message.text()))
    await page.goto(origin + path)
    const without = PAGES.indexOf(path) > 1 ? FRAME : undefined
    expect(await findViolationsInBothSchemes(page, { without })).toEqual(NO_VIOLATIONS)
    await page.setViewportSize({ width: 320, height: 900 })
    expect(await measureOverflow(page)).toBe(0)
    expect(foreign).toEqual([])
    await giveBack()
  },
)

test('the search finds an error by its code', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  // Starlight loads the search when the browser is idle, which a busy machine may never be; without idle callbacks, as in
  // Safari, by a timer.
  await page.addInitScript('delete window.requestIdleCallback')
  await page.goto(`${origin}/`)
  await page.getByRole('button', { name: 'Search' }).click()
  await page.locator('dialog input').fill('duplicate_not_confirmed')
  await page.getByRole('dialog').getByRole('link', { name: 'duplicate_not_confirmed' }).first().waitFor()
  await page.context().close()
})

test('the form of a call asks the service that serves the page', async () => {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 } })
  await page.goto(`${origin}/reference/webhook/webhook-find-one/`)
  const form = page.locator('signalbox-try-it')
  await form.getByLabel('id').fill('0199a3c4-5d1b-7c44-8a02-6f6f2f0e4b11')
  await form.getByRole('button', { name: 'Send GET' }).click()
  await form.getByText('"code": "unauthenticated"').waitFor()
  await giveBack()
})

test('on another origin the form asks the service that is named, and says what is missing when nothing answers', async () => {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 } })
  await page.goto(`${elsewhereOrigin}${SITE_PATH}/reference/webhook/webhook-find-one/`)
  const form = page.locator('signalbox-try-it')
  await form.getByLabel('Service').fill(service.app.baseUrl())
  await form.getByLabel('id').fill('0199a3c4-5d1b-7c44-8a02-6f6f2f0e4b11')
  await form.getByRole('button', { name: 'Send GET' }).click()
  await form.getByText('"code": "unauthenticated"').waitFor()
  await form.getByLabel('Service').fill('http://127.0.0.1:1')
  await form.getByRole('button', { name: 'Send GET' }).click()
  await form.getByText(`name ${elsewhereOrigin} in CORS_ALLOWED_ORIGINS`).waitFor()
  await giveBack()
})

test('every page is there as Markdown, and llms.txt lists them', async () => {
  const list = (await read('llms.txt')).toString()
  const links = [...list.matchAll(/\]\((\/[^)]+\.md)\)/g)].map(([, link = '']) => link)
  expect(links.length).toBeGreaterThan(400)
  for (const link of links)
    expect((await read(link.slice(`${SITE_PATH}/`.length))).toString().startsWith('# ')).toBe(true)
})
