import type { Page } from 'playwright-core'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registerDocs } from '../../src/http/reference/docs.ts'
import { registerOpenApi } from '../../src/http/reference/openapi.ts'
import { buildPipelineServer } from '../harness/app/pipeline-server.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { findViolations, findViolationsInBothSchemes, measureOverflow, NO_VIOLATIONS } from './page-browser.ts'

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
async function openPage(path: string) {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' })
  const requested: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => requested.push(request.url()))
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(origin + path)
  return { page, requested, complaints, giveBack }
}

/** The links and the ids in a page of the reference, read by the parser of the browser. */
async function readLinks(page: Page, path: string): Promise<{ links: string[]; ids: string[] }> {
  const answer = await fetch(origin + path)
  expect([path, answer.status]).toEqual([path, 200])
  if (!answer.headers.get('content-type')?.startsWith('text/html')) return { links: [], ids: [] }
  return page.evaluate(
    (text) => {
      const parsed = new DOMParser().parseFromString(text, 'text/html')
      const links = [...parsed.links].map((link) => link.getAttribute('href') ?? '')
      return { links, ids: [...parsed.querySelectorAll('[id]')].map(({ id }) => id) }
    },
    await answer.text(),
  )
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
  test.each(PAGES)(
    '%s has no fault that axe finds in light and dark, fits 320 pixels, loads nothing external and violates no policy',
    async (path) => {
      const { page, requested, complaints, giveBack } = await openPage(path)
      expect(await page.evaluate('document.styleSheets.length')).toBe(1)
      expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
      await page.setViewportSize({ width: 320, height: 900 })
      expect(await measureOverflow(page)).toBe(0)
      expect(requested.filter((url) => !url.startsWith(origin))).toEqual([])
      expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
      await giveBack()
    },
  )

  test('follows the colour scheme of the system', async () => {
    const { page, giveBack } = await openPage('/docs')
    const fixtures: unknown[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      fixtures.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
    }
    expect(fixtures).toEqual(['rgb(255, 255, 255)', 'rgb(20, 23, 28)'])
    await giveBack()
  })

  test('axe finds an inserted fault', async () => {
    const { page, giveBack } = await openPage('/docs')
    await page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input>')")
    expect(await findViolations(page)).toEqual([expect.stringContaining('label')])
    await giveBack()
  })

  test('the search filters operations, events and errors by words in any order, and sends nothing', async () => {
    const { page, requested, giveBack } = await openPage('/docs/search')
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
    await giveBack()
  })

  test.each(['/docs/search#thing.update', '/docs/search?q=thing.update', '/docs/search?q=UPDATE+thing.'])(
    'a link to a search shows what it finds: %s',
    async (path) => {
      const { page, giveBack } = await openPage(path)
      const found = () => page.locator('#index > li:visible').allInnerTexts()
      expect(await found()).toEqual([expect.stringContaining('thing.update')])
      await page.getByLabel('Words').fill('')
      await page.reload()
      expect((await found()).length).toBeGreaterThan(40)
      await giveBack()
    },
  )

  test('without scripts the search is the whole index', async () => {
    const page = await browser.newPage({ javaScriptEnabled: false })
    await page.goto(`${origin}/docs/search`)
    expect(await page.locator('#index > li:visible').count()).toBeGreaterThan(40)
    expect(await page.getByLabel('Words').isVisible()).toBe(false)
    await page.close()
  })

  test('every link inside the reference has a page, and every anchor a target', async () => {
    const { page, giveBack } = await browser.lend()
    const idsOf = new Map<string, readonly string[]>()
    const anchors = new Set<string>()
    const waiting = ['/docs']
    while (waiting.length > 0) {
      const path = waiting.pop()!
      if (idsOf.has(path)) continue
      const { links, ids } = await readLinks(page, path)
      idsOf.set(path, ids)
      for (const link of links.filter((link) => link.startsWith('#'))) anchors.add(path + link)
      for (const link of links.filter((link) => link.startsWith('/'))) {
        waiting.push(link.split('#')[0]!)
        if (link.includes('#')) anchors.add(link)
      }
    }
    expect(idsOf.size).toBeGreaterThan(20)
    expect([...anchors]).toContain('/docs/schemas#Thing')
    for (const link of anchors) {
      const [path = '', anchor] = link.split('#')
      expect([link, idsOf.get(path)?.filter((id) => id === anchor)]).toEqual([link, [anchor]])
    }
    await giveBack()
  })

  test('the first key press reaches the content past the navigation', async () => {
    const { page, giveBack } = await openPage('/docs/sample')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    await giveBack()
  })
})
