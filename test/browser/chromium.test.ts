import { expect, test } from 'vitest'
import { launchChromium, shareChromium } from './chromium.ts'
import { findViolationsInBothSchemes } from './page-browser.ts'

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

test('axe finds in dark colours a contrast that is too small, and the fault of an element that only they show', async () => {
  const browser = await shareChromium()
  const page = await browser.newPage()
  const find = async (style: string, more = '') => {
    const head = `<title>A page</title><style>@media (prefers-color-scheme: dark) { ${style} }</style>`
    await page.setContent(`<html lang="en">${head}<main><h1>Words</h1>${more}</main></html>`)
    return findViolationsInBothSchemes(page)
  }
  expect(await find('h1 { color: #777; background: #666 }')).toEqual({
    light: [],
    dark: [expect.stringContaining('color-contrast: <h1>')],
  })
  expect(await find('input { display: block !important }', '<input style="display: none">')).toEqual({
    light: [],
    dark: [expect.stringContaining('label: <input')],
  })
  await browser.close()
})
