import { afterAll, beforeAll, expect, test } from 'vitest'
import { findTextFaults } from './layout.ts'
import {
  findViolationsInBothSchemes,
  measureOverflow,
  NO_VIOLATIONS,
  type PageBrowser,
  readHeadings,
  startPageBrowser,
} from './page-browser.ts'

let browser: PageBrowser
beforeAll(async () => {
  browser = await startPageBrowser({ APP_ENV: 'development' })
})
afterAll(() => browser[Symbol.asyncDispose]())

test('the start page has nothing that axe finds, fits 320 px, and leads to sign-in, reference and mails', async () => {
  const { page, foreign, complaints, close } = await browser.open({ reducedMotion: 'reduce' })
  await page.goto('/')
  expect(await readHeadings(page)).toEqual(['Signalbox'])
  expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
  await page.setViewportSize({ width: 320, height: 640 })
  expect(await measureOverflow(page)).toBeLessThanOrEqual(0)
  for (const [link, path] of [
    ['Sign in', '/auth/sign-in?next=%2Fauth%2F'],
    ['Open the reference', '/docs'],
    ['Read mails', '/auth/mail'],
  ] as const) {
    await page.goto('/')
    await page.getByRole('link', { name: link }).click()
    await page.waitForURL(`${browser.origin}${path}`)
  }
  await page.goto('/')
  expect(await findTextFaults(page)).toEqual([])
  expect([foreign, complaints]).toEqual([[], []])
  await close()
})
