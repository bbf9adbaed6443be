import { expect, test } from 'vitest'
import { launchChromium } from './chromium.ts'

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
