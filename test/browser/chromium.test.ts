import type { Route } from 'playwright-core'
import { expect, test } from 'vitest'
import { findFreePort } from '../harness/process/port.ts'
import { launchChromium, shareChromium } from './chromium.ts'
import type { LentPage } from './lent-page.ts'
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

test('a browser starts here: that of CHROMIUM_PATH, or on Linux x64 the one of the package @sparticuz/chromium', async () => {
  const browser = await launchChromium()
  const page = await browser.newPage()
  await page.setContent('<h1>Started</h1>')
  expect(await page.locator('h1').innerText()).toBe('Started')
  await browser.close()
})

test('a CHROMIUM_PATH that starts no browser is named, with the remedy', async () => {
  const before = process.env.CHROMIUM_PATH
  process.env.CHROMIUM_PATH = import.meta.filename
  try {
    await expect(launchChromium()).rejects.toThrow(/^CHROMIUM_PATH starts no browser: set it to an installed Chromium/)
  } finally {
    if (before === undefined) delete process.env.CHROMIUM_PATH
    else process.env.CHROMIUM_PATH = before
  }
})

test('axe finds in the second colours a contrast that is too small, and the fault of an element that only they show', async () => {
  const browser = await shareChromium()
  const page = await browser.newPage()
  const find = async (scheme: 'light' | 'dark', style: string, more = '') => {
    await page.emulateMedia({ colorScheme: scheme === 'light' ? 'dark' : 'light' })
    const head = `<title>A page</title><style>@media (prefers-color-scheme: ${scheme}) { ${style} }</style>`
    await page.setContent(`<html lang="en">${head}<main><h1>Words</h1>${more}</main></html>`)
    return findViolationsInBothSchemes(page)
  }
  for (const scheme of ['light', 'dark'] as const) {
    expect(await find(scheme, 'h1 { color: #777; background: #666 }')).toEqual({
      ...NO_VIOLATIONS,
      [scheme]: [expect.stringContaining('color-contrast: <h1>')],
    })
    expect(await find(scheme, 'input { display: block !important }', '<input style="display: none">')).toEqual({
      ...NO_VIOLATIONS,
      [scheme]: [expect.stringContaining('label: <input')],
    })
  }
  await browser.close()
})

test('a page that a file gave back is lent to the next file, without its cookies; one that it did not ends with it', async () => {
  const options = { userAgent: 'of this test' }
  const earlier = await shareChromium()
  const [kept, left] = [await earlier.lend(options), await earlier.lend(options)]
  await kept.context.addCookies([{ name: 'a', value: 'b', url: 'http://localhost:1' }])
  await kept.page.setContent('<h1>Words</h1>')
  await kept.giveBack()
  await earlier.close()
  expect(left.page.isClosed()).toBe(true)
  const later = await shareChromium()
  const again = await later.lend(options)
  expect(again.page).toBe(kept.page)
  expect(await again.context.cookies()).toEqual([])
  expect(await again.page.evaluate('[location.href, document.querySelector("h1")]')).toEqual(['about:blank', null])
  const others = [again, await later.lend(options), await later.lend(options), await later.lend(options)]
  for (const lent of others) await lent.giveBack()
  await later.close()
  expect(others.map(({ page }) => page.isClosed())).toEqual([true, false, false, false])
})

test('a page whose clock or functions a test replaced is lent to nobody else', async () => {
  const browser = await shareChromium()
  const options = { userAgent: 'of a test that replaces' }
  const replaced = [
    ({ page }: LentPage) => page.clock.setFixedTime(0),
    ({ page }: LentPage) => page.exposeFunction('ofTheTest', () => 0),
    ({ page }: LentPage) => page.addInitScript('globalThis.ofTheTest = 1'),
  ]
  for (const replace of replaced) {
    const lent = await browser.lend(options)
    await replace(lent)
    await lent.giveBack()
    expect(lent.page.isClosed()).toBe(true)
    const next = await browser.lend(options)
    expect(await next.page.evaluate('[Date.now() > 0, typeof ofTheTest]')).toEqual([true, 'undefined'])
    await next.giveBack()
    expect(next.page.isClosed()).toBe(false)
  }
  await browser.close()
})

test('a page that a test took offline, listened to, routed, allowed something or let store something is lent as a new one', async () => {
  const browser = await shareChromium()
  const options = { userAgent: 'of a test of traces', baseURL: `http://127.0.0.1:${await findFreePort()}` }
  const answer = (route: Route) => route.fulfill({ contentType: 'text/html', body: '<h1>Traces</h1>' })
  const lent = await browser.lend(options)
  await lent.context.route('**', answer)
  await lent.page.goto('/')
  await lent.page.evaluate("localStorage.setItem('trace', '1'); sessionStorage.setItem('trace', '1')")
  await lent.context.grantPermissions(['geolocation'])
  lent.page.on('dialog', () => {})
  await lent.page.emulateMedia({ forcedColors: 'active', media: 'print' })
  await lent.context.setOffline(true)
  await lent.giveBack()
  const next = await browser.lend(options)
  expect(next.page).toBe(lent.page)
  expect(await next.page.goto('/').catch((error: Error) => error.message)).toMatch(/ERR_CONNECTION_REFUSED/)
  await next.page.route('**', answer)
  await next.page.goto('/')
  const seen = `Promise.all([
    localStorage.length, sessionStorage.length, navigator.onLine, matchMedia('print').matches,
    matchMedia('(forced-colors: active)').matches,
    navigator.permissions.query({ name: 'geolocation' }).then(({ state }) => state), confirm('?'),
  ])`
  expect(await next.page.evaluate(seen)).toEqual([
    0,
    0,
    true,
    false,
    false,
    expect.not.stringMatching('granted'),
    false,
  ])
  await next.giveBack()
  await browser.close()
})
