import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { UserId } from '../../src/base/id.ts'
import { fillSample } from '../../src/command/sample/sample.ts'
import { foldOutcomes } from '../../src/webhook/activity/outcome.store.ts'
import { listConsoleRoutes, ROWS } from '../../tools/pictures/console-routes.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { type ConsoleBrowser, follow, startConsoleBrowser, takePicture, waitUntilLoaded } from './console-browser.ts'
import { answerTexts, findLayoutFaults, lengthen } from './layout.ts'

// Every screen in four layouts.
vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 })

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
  const { t } = c.d
  await fillSample({
    ...{ db: t.database.db, keyring: t.app.keyring, now: new Date(t.clock.now()), administrator: c.operator as UserId },
    sinkUrl: `${c.origin}/api/v3/webhook/sink`,
  })
  const { body } = await c.d.call('GET', '/api/v3/identity/account?sort=created_at&page_size=1')
  const oidc = { issuer: 'https://login.finch.example', client_id: 'signalbox', client_secret: 'of the test' }
  const connection = { kind: 'oidc', name: 'Finch login', is_jit: true, oidc }
  await c.d.call('POST', `/api/v3/identity/account/${body.data[0].document_id}/connection`, connection)
})
afterAll(() => c?.[Symbol.asyncDispose]())

const readTexts = (folder: string): Record<string, string> =>
  JSON.parse(readFileSync(join(PROJECT_ROOT, 'console', 'src', folder, 'en.json'), 'utf8'))

const CONSOLE_TEXTS = readTexts('language')
const PORTAL_TEXTS = readTexts('portal/language')

/** Puts the ids of rows in the places of a route. */
async function fillPath(route: string): Promise<string> {
  let [path, id] = [route, '']
  for (const list of [ROWS[route] ?? []].flat()) {
    const { body } = await c.d.call('GET', list.replace('{id}', id))
    id = body.data[0].document_id
    path = path.replace(/\$\w+/, id)
  }
  return path
}

test('a lengthened text is 40 % longer, and keeps its places, and what is no word', () => {
  expect(lengthen('Show {{count}} rows of webhook:find-all.')).toBe('⟦Showow {{count}} rowsws off webhook:find-all.⟧')
  for (const text of Object.values(CONSOLE_TEXTS).filter((text) => /^[a-z ]{8,}$/i.test(text)))
    expect(lengthen(text).length, text).toBeGreaterThanOrEqual(text.length * 1.3)
})

test('no screen cuts a text that is 40 % longer, or scrolls sideways, at 320 and 1280 px, from left to right and from right to left', async () => {
  await using opened = await c.open('/console/health')
  const { page } = opened
  await page.route('**/console/assets/de-*.js', (route) => answerTexts(route, CONSOLE_TEXTS))
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  const faults: string[] = []
  for (const [index, route] of listConsoleRoutes().entries()) {
    await follow(page, await fillPath(route))
    await page.locator('h1').first().waitFor()
    faults.push(...(await findLayoutFaults(page, route, index > 0)))
  }
  expect(faults).toEqual([])
})

test('no list of the German console scrolls sideways at 1,280 px, with the rows of the sample', async () => {
  await using opened = await c.open('/console/health')
  const { page } = opened
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  await page.setViewportSize({ width: 1280, height: 800 })
  const wide: string[] = []
  let rows = 0
  for (const route of listConsoleRoutes().filter((path) => !/[$]|new$/.test(path))) {
    await follow(page, route)
    await page.locator('h1').first().waitFor()
    await waitUntilLoaded(page)
    rows += await page.locator('.scroll tbody tr').count()
    const found = await page.locator('.scroll:has(table)').evaluateAll((all) =>
      all.flatMap((one) => {
        const over = one.scrollWidth - one.clientWidth
        return over > 0 ? [`${one.getAttribute('aria-label')} by ${over} px`] : []
      }),
    )
    wide.push(...found.map((list) => `${route}: ${list}`))
  }
  expect(rows).toBeGreaterThan(400)
  expect(wide).toEqual([])
})

/** Whether the open tab is out of sight, and how far the page is scrolled. */
const readTabs = () => {
  const tab = document.querySelector('main [role="tab"][aria-selected="true"]')
  const [own, strip] = [tab, tab?.parentElement].map((one) => one?.getBoundingClientRect())
  const isOut = !own || !strip || own.left < strip.left - 1 || own.right > strip.right + 1
  return { tab: tab?.textContent, isOut, pageX: scrollX, pageY: scrollY }
}

test('an open tab is in sight on a phone, at first, once selected and in a narrower window, and moves no page', async () => {
  const user = await fillPath('users/$id')
  await using opened = await c.open('/console/health')
  const { page } = opened
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  const open = async (path: string) => {
    await follow(page, path)
    await page.locator('main [role="tab"]').first().waitFor()
    await waitUntilLoaded(page)
  }
  const inSight = (pageY = 0) => ({ tab: 'API-Schlüssel', isOut: false, pageX: 0, pageY })
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 320 })
    await open(user)
    await open(`${user}?tab=keys`)
    await expect.poll(() => page.evaluate(readTabs), { message: `${width} at first` }).toEqual(inSight())
    await page.setViewportSize({ width: 1280, height: 320 })
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    await page.setViewportSize({ width, height: 320 })
    await expect.poll(() => page.evaluate(readTabs), { message: `${width} narrower` }).toEqual(inSight())
    await open(user)
    await page.evaluate(() => scrollTo(0, 120))
    await page.evaluate(
      "[...document.querySelectorAll('main [role=tab]')].find((one) => one.textContent === 'API-Schlüssel').click()",
    )
    await waitUntilLoaded(page)
    await expect.poll(() => page.evaluate(readTabs), { message: `${width} selected` }).toEqual(inSight(120))
  }
})

/** The places of the labels and marks of each chart of a screen, px from its left edge, in the order of their points. */
const readCharts = () =>
  [...document.querySelectorAll('.recharts-wrapper')].map((chart) => {
    const { left, width } = chart.getBoundingClientRect()
    const placesOf = (selector: string) =>
      [...chart.querySelectorAll(selector)].map((element) => {
        const box = element.getBoundingClientRect()
        return { from: box.left - left, to: box.right - left }
      })
    return {
      width,
      times: placesOf('.recharts-xAxis-tick-labels text'),
      values: placesOf('.recharts-yAxis-tick-labels text'),
      marks: placesOf('.recharts-bar-rectangle path, .recharts-line-dot'),
    }
  })

test('charts run in the direction of the page: their time, values, bars, tooltips and small bars', async () => {
  while ((await foldOutcomes(c.d.t.database.db, { limit: 10_000 })) > 0);
  await using opened = await c.open('/console/overview')
  const { page } = opened
  await page.locator('.recharts-bar-rectangle path').first().waitFor({ state: 'attached' })
  await page.locator('.recharts-line-dot').first().waitFor({ state: 'attached' })
  for (const direction of ['ltr', 'rtl'] as const) {
    await page.evaluate((dir) => {
      document.documentElement.dir = dir
    }, direction)
    const isFromRight = direction === 'rtl'
    const ordered = async () => (await page.evaluate(readCharts)).map(({ times }) => times[0]!.from > times[1]!.from)
    await expect.poll(async () => new Set(await ordered())).toEqual(new Set([isFromRight]))
    const charts = await page.evaluate(readCharts)
    expect(charts.length).toBeGreaterThan(1)
    for (const { width, times, values, marks } of charts) {
      const inOrder = isFromRight ? times.toReversed() : times
      for (const [index, { to }] of inOrder.slice(0, -1).entries())
        expect(to, direction).toBeLessThanOrEqual(inOrder[index + 1]!.from)
      // Axis and plot stand beside each other, and the words of both inside the chart.
      for (const { from, to } of [...times, ...values]) {
        expect(from, direction).toBeGreaterThanOrEqual(-1)
        expect(to, direction).toBeLessThanOrEqual(width + 1)
      }
      const plot = { from: Math.min(...marks.map(({ from }) => from)), to: Math.max(...marks.map(({ to }) => to)) }
      for (const { from, to } of values)
        isFromRight
          ? expect(from, direction).toBeGreaterThanOrEqual(plot.to - 2)
          : expect(to, direction).toBeLessThanOrEqual(plot.from + 2)
    }
    const chart = page.locator('.recharts-wrapper').first()
    const box = (await chart.boundingBox())!
    await chart.scrollIntoViewIfNeeded()
    await chart.hover({ position: { x: isFromRight ? box.width - 60 : 60, y: 100 } })
    const tooltip = chart.locator('.recharts-default-tooltip')
    await tooltip.waitFor()
    expect(await tooltip.evaluate((element) => getComputedStyle(element).direction)).toBe(direction)
    const place = (await tooltip.boundingBox())!
    expect(place.x).toBeGreaterThanOrEqual(box.x)
    expect(place.x + place.width).toBeLessThanOrEqual(box.x + box.width + 1)
    await takePicture(page, `overview-${direction}`)
  }
  await follow(page, 'webhooks')
  const bars = page.locator('.mini-bars').filter({ has: page.locator('g:nth-of-type(2)') })
  await bars.first().waitFor()
  const places = await bars.evaluateAll((all) =>
    all.map((one) => [...one.querySelectorAll('g')].map((group) => group.getBoundingClientRect().x)),
  )
  expect(places.length).toBeGreaterThan(0)
  for (const one of places) expect(one).toEqual(one.toSorted((first, second) => second - first))
  await takePicture(page, 'webhooks-rtl')
  await follow(page, await fillPath('deliveries/$id'))
  await page.locator('.strip').waitFor()
  await takePicture(page, 'delivery-rtl')
  await follow(page, await fillPath('events/$id'))
  await page.locator('.mantine-Timeline-root').waitFor()
  await takePicture(page, 'event-rtl')
})

/** A name as long as one may be, which is one word. */
const LONG = `${'Donaudampfschifffahrtsgesellschaft'.repeat(2)}skapitän`

/** The lines of this text that leave their card, dialog, cell or page, or make a column wider than a name may. */
const findOutside = (text: string) => {
  const found: string[] = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement
    if (!element || !node.textContent?.includes(text) || element.closest('option, .visually-hidden')) continue
    const around = element.closest('.mantine-Card-root, [role="dialog"], td, main') ?? document.body
    const outer = around.getBoundingClientRect()
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const { left, right, width } of range.getClientRects())
      if (width > 1 && (left < outer.left - 1.5 || right > outer.right + 1.5))
        found.push(around.outerHTML.slice(0, 120))
    if (element.closest('td') && range.getBoundingClientRect().width > 360) found.push('wider than a column')
  }
  return found
}

test('a name of one long word leaves no card, dialog or column, and every filter shows its words', async () => {
  const { call } = c.d
  const account = (await call('POST', '/api/v3/identity/account', { name: LONG })).body.data.document_id
  const url = 'https://example.com/hook'
  await call('POST', '/api/v3/webhook/webhook', { name: LONG, is_global: true, url, events: ['contract.update'] })
  const oidc = { issuer: 'https://login.other.example', client_id: 'signalbox', client_secret: 'of the test' }
  const body = { kind: 'oidc', name: LONG, is_jit: true, oidc }
  const made = await call('POST', `/api/v3/identity/account/${account}/connection`, body)
  await using opened = await c.open('/console/health')
  const { page } = opened
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  const type = await fillPath('catalogue/$id')
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 })
    for (const path of ['accounts', `accounts/${account}?tab=sign-in`, type, await fillPath('events/$id')]) {
      await follow(page, path)
      await page.getByText(LONG).first().waitFor()
      expect(await page.evaluate(findOutside, LONG), `${path} ${width}`).toEqual([])
    }
    await follow(page, `accounts/${account}/sign-in/${made.body.data.document_id}`)
    await page.getByRole('button', { name: 'Löschen', exact: true }).click()
    await page.getByLabel(`Zur Bestätigung ${LONG} eingeben`).waitFor()
    expect(await page.evaluate(findOutside, LONG), `dialog ${width}`).toEqual([])
    await page.getByRole('button', { name: 'Abbrechen' }).click()
  }
  await follow(page, 'audit')
  await page.getByRole('button', { name: 'Exportieren' }).click()
  await page.getByText('Höchstens 10.000 Einträge').waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  await page.keyboard.press('Escape')
  // On a phone a name has a line of its own; nothing there shows a title.
  await page.setViewportSize({ width: 320, height: 800 })
  await follow(page, 'overview')
  const names = page.locator('.mantine-Card-root a[href*="/webhooks/"]')
  await names.first().waitFor()
  const cut = await names.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length)
  expect(cut).toBe(0)
  await page.setViewportSize({ width: 1280, height: 800 })
  await follow(page, 'deliveries')
  const narrow = await page.locator('.filters select').evaluateAll(
    (all) =>
      all.filter((one) => {
        const free = one.cloneNode(true) as HTMLSelectElement
        free.style.cssText = 'position: absolute; width: max-content'
        one.parentElement?.append(free)
        const isNarrow = free.offsetWidth > (one as HTMLElement).offsetWidth + 1
        free.remove()
        return isNarrow
      }).length,
  )
  expect(narrow).toBe(0)
})

test('no screen of the portal does', async () => {
  await using opened = await c.open('/console/health')
  const { page } = opened
  const portal = page
  const account = await fillPath('accounts/$id')
  const made = await c.d.call('POST', `/api/v3/identity/${account.replace('accounts', 'account')}/portal-session`, {
    role: 'account-developer',
    language: 'de',
  })
  await portal.route('**/console/assets/de-*.js', async (route) => {
    const isPortal = (await (await route.fetch()).text()).length < 10_000
    await answerTexts(route, isPortal ? PORTAL_TEXTS : CONSOLE_TEXTS)
  })
  await portal.goto(made.body.data.url)
  const faults: string[] = []
  for (const screen of ['webhooks', 'new', 'deliveries', 'events', 'limits']) {
    await portal.evaluate((hash) => {
      location.hash = hash
    }, `#/${screen}`)
    await waitUntilLoaded(portal)
    await portal.locator('h1').first().waitFor()
    faults.push(...(await findLayoutFaults(portal, screen)))
  }
  expect(faults).toEqual([])
})
