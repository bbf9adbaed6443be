import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registerDocs } from '../../src/reference/docs.ts'
import { registerOpenApi } from '../../src/reference/openapi.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database.ts'
import { buildPipelineServer } from '../harness/pipeline-server.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'

let database: TestDatabase
let server: Awaited<ReturnType<typeof buildPipelineServer>>['server']
let browser: SharedBrowser
let origin: string

beforeAll(async () => {
  database = await createTestDatabase()
  const envelope = Type.Object({ id: Type.String({ description: 'The event.' }), attempt: Type.Integer() })
  const eventTypes = ['thing.create', 'thing.update'].map((name) => {
    return { name, accountScope: 'account' as const, description: 'A thing changed.' }
  })
  const sample = await buildPipelineServer({
    db: database.db,
    before: async (fresh) => {
      await registerOpenApi(fresh, { version: '1.2.3', eventTypes, envelope })
      registerDocs(fresh)
    },
  })
  server = sample.server
  origin = await server.listen({ port: 0, host: '127.0.0.1' })
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await server?.close()
  await database?.[Symbol.asyncDispose]()
})

/** Opens a page and records its requests and its errors. */
async function openPage(path: string, options: { colorScheme?: 'light' | 'dark'; width?: number } = {}) {
  const { colorScheme = 'light', width = 1280 } = options
  const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } })
  const requested: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => requested.push(request.url()))
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  const response = await page.goto(origin + path)
  return { page, requested, complaints, status: response?.status() }
}

async function findViolations(page: Page) {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`)
}

const PAGES = [
  '/docs',
  '/docs/sample',
  '/docs/events',
  '/docs/schemas',
  '/docs/search',
  '/docs/errors',
  '/docs/errors/validation_failed',
  '/docs/nope',
]

describe('the API reference in a browser', () => {
  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    test.each(PAGES)('%s has no accessibility fault that axe finds', async (path) => {
      const { page } = await openPage(path, { colorScheme })
      expect(await findViolations(page)).toEqual([])
      await page.close()
    })

    test('follows the colour scheme of the system', async () => {
      const { page } = await openPage('/docs', { colorScheme })
      const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
      expect(ground).toBe(colorScheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(20, 23, 28)')
      await page.close()
    })
  })

  test('axe finds an inserted fault', async () => {
    const { page } = await openPage('/docs')
    await page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input>')")
    expect(await findViolations(page)).toEqual([expect.stringContaining('label')])
    await page.close()
  })

  test.each(PAGES)('%s loads nothing external and violates no policy', async (path) => {
    const { page, requested, complaints } = await openPage(path)
    expect(requested.filter((url) => !url.startsWith(origin))).toEqual([])
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
    expect(await page.evaluate('document.styleSheets.length')).toBe(1)
    await page.close()
  })

  test.each(PAGES)('%s fits a narrow screen without sideways scrolling', async (path) => {
    const { page } = await openPage(path, { width: 320 })
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect(overflow).toBe(0)
    await page.close()
  })

  test('the search filters operations, events and errors by words in any order, and sends nothing', async () => {
    const { page, requested } = await openPage('/docs/search')
    const visible = () => page.locator('#index > li:visible').allInnerTexts()
    const all = (await visible()).length
    const loaded = requested.length
    await page.getByLabel('Words').fill('CREATE thing.')
    expect(await visible()).toEqual([expect.stringMatching(/^thing\.create event$/)])
    expect(await page.getByRole('status').innerText()).toBe('1 entry')
    await page.getByLabel('Words').fill('rate_limited')
    expect(await visible()).toEqual([expect.stringMatching(/rate_limited error$/)])
    await page.getByLabel('Words').fill('no-such-word')
    expect(await page.getByRole('status').innerText()).toBe('0 entries')
    await page.getByLabel('Words').fill('')
    expect(await visible()).toHaveLength(all)
    expect(requested).toHaveLength(loaded)
    await page.close()
  })

  test('a link to a search shows what it finds', async () => {
    const { page } = await openPage('/docs/search#thing.update')
    expect(await page.locator('#index > li:visible').allInnerTexts()).toEqual([expect.stringContaining('thing.update')])
    await page.close()
  })

  test('without scripts the search is the whole index', async () => {
    const page = await browser.newPage({ javaScriptEnabled: false })
    await page.goto(`${origin}/docs/search`)
    expect(await page.locator('#index > li:visible').count()).toBeGreaterThan(40)
    expect(await page.getByLabel('Words').isVisible()).toBe(false)
    await page.close()
  })

  test('every link inside the reference has a page, and every anchor a target', async () => {
    const { page } = await openPage('/docs')
    const seen = new Set<string>()
    const anchors = new Set<string>()
    const waiting = ['/docs']
    while (waiting.length > 0) {
      const path = waiting.pop()!
      if (seen.has(path)) continue
      seen.add(path)
      const response = await page.goto(origin + path)
      expect([path, response?.status()]).toEqual([path, 200])
      if (path === '/openapi.json') continue
      const links = (await page.evaluate('[...document.links].map((link) => link.getAttribute("href"))')) as string[]
      for (const link of links.filter((one) => one.startsWith('#')))
        expect(await page.locator(`[id="${link.slice(1)}"]`).count()).toBe(1)
      for (const link of links.filter((one) => one.startsWith('/'))) {
        waiting.push(link.split('#')[0]!)
        if (link.includes('#')) anchors.add(link)
      }
    }
    expect(seen.size).toBeGreaterThan(20)
    expect([...anchors]).toContain('/docs/schemas#Thing')
    for (const link of anchors) {
      const [path, anchor] = link.split('#')
      await page.goto(origin + path)
      expect([link, await page.locator(`[id="${anchor}"]`).count()]).toEqual([link, 1])
    }
    await page.close()
  })

  test('the first key press reaches the content past the navigation', async () => {
    const { page } = await openPage('/docs/sample')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    await page.close()
  })
})
