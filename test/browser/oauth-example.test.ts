import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type OauthExample, startOauthExample } from '../harness/browser/oauth-example.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import type { LentPage, PageOptions } from './lent-page.ts'

let example: OauthExample
let browser: SharedBrowser
let page: Page
beforeAll(async () => {
  example = await startOauthExample()
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await example?.[Symbol.asyncDispose]()
})

/** What the running test has opened. */
const opened: LentPage[] = []

/** Opens a browser, with or without scripts. */
async function open(options: PageOptions = {}): Promise<void> {
  const lent = await browser.lend(options)
  opened.push(lent)
  page = lent.page
}
beforeEach(() => open())
afterEach(async () => {
  for (const lent of opened.splice(0)) await lent.giveBack()
})

async function signIn(): Promise<string> {
  const user = await example.fixture.user()
  await page.goto(`${example.origin}/sign-in`)
  await page.getByLabel('E-mail').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Allow Example app?' }).waitFor()
  // The clock of the service is that of the machine, like the provider's.
  example.fixture.app.clock.set(Date.now())
  return user.email
}

test('a user signs in, allows the app without one scope, and arrives at it', async () => {
  const email = await signIn()
  await page.getByLabel('see your contracts').uncheck()
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForURL(`${example.origin}/`)
  expect(await page.locator('#who').textContent()).toBe(`Signed in as ${email}, no contracts (403)`)
})

test('without scripts the pages work the same', async () => {
  await open({ javaScriptEnabled: false })
  const email = await signIn()
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForURL(`${example.origin}/`)
  expect(await page.locator('#who').textContent()).toBe(`Signed in as ${email}, 0 contracts`)
})

test('a user who refuses arrives at the app with the reason', async () => {
  await signIn()
  await page.getByRole('button', { name: 'Do not allow' }).click()
  await page.waitForURL(/\/callback\?error=access_denied/)
})
