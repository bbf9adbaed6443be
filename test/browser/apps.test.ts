import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { type OauthFixture, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { findTextFaults } from './layout.ts'
import { fillFirst, findViolationsInBothSchemes, measureOverflow, NO_VIOLATIONS } from './page-browser.ts'

let fixture: OauthFixture
let browser: SharedBrowser
let app: Server
let redirectUri: string

beforeAll(async () => {
  app = createServer((_request, response) => response.end('the app'))
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  redirectUri = `http://127.0.0.1:${(app.address() as AddressInfo).port}/callback`
  fixture = await startOauthFixture()
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await fixture?.[Symbol.asyncDispose]()
  app?.close()
})

async function signIn(page: Page, url: string): Promise<void> {
  const user = await fixture.user()
  await page.goto(url)
  await fillFirst(page.getByLabel('E-mail address'), user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Goes to the consent page of an app as a new user. */
async function reachConsent(page: Page): Promise<void> {
  const flow = await openFlow(
    fixture,
    await fixture.client({ name: 'Rail planner', publisher: 'Northwind Ltd', redirect_uris: [redirectUri] }),
  )
  const { url } = await flow.prepare({
    scope: 'openid profile email offline_access contract:read',
    parameters: { prompt: 'consent' },
  })
  await signIn(page, url)
  await page.getByRole('heading', { name: 'Allow Rail planner?' }).waitFor()
}

/** Allows an app and goes to the list. */
async function reachApps(page: Page): Promise<void> {
  await reachConsent(page)
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.getByText('the app').waitFor()
  await page.goto(`${fixture.baseUrl}/auth/apps`)
}

/** Sets an authenticator app up as far as its key. */
async function reachKey(page: Page): Promise<void> {
  await signIn(page, `${fixture.baseUrl}/auth/security`)
  await page.getByRole('button', { name: 'Set up an app' }).click()
  await page.getByLabel('Code of the app').fill('000000')
  await page.getByRole('button', { name: 'Turn it on' }).click()
  await page.getByText('This code is wrong').first().waitFor()
}

const PAGES = [
  { name: 'the consent page', reach: reachConsent },
  { name: 'the page of the apps with access', reach: reachApps },
]

describe.each(PAGES)('$name', ({ reach }) => {
  test('has no fault that axe finds in light and dark, and fits 320 pixels', async () => {
    const { page, giveBack } = await browser.lend({ reducedMotion: 'reduce' })
    await reach(page)
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await measureOverflow(page)).toBe(0)
    expect(await findTextFaults(page)).toEqual([])
    await giveBack()
  })
})

test('the key of an authenticator app is still there after a wrong code', async () => {
  const { page, giveBack } = await browser.lend()
  await reachKey(page)
  expect(await page.getByRole('img', { name: 'QR code' }).isVisible()).toBe(true)
  await giveBack()
})

test('a box of the consent page shows no bullet, and is checked by its words', async () => {
  const { page, giveBack } = await browser.lend()
  await reachConsent(page)
  const box = page.getByRole('checkbox', { name: 'see your contracts' })
  expect(await box.isChecked()).toBe(true)
  await page.getByText('see your contracts').click()
  expect(await box.isChecked()).toBe(false)
  const style = await page.locator('.scopes').evaluate((list) => getComputedStyle(list).listStyleType)
  expect(style).toBe('none')
  await giveBack()
})

test.each([true, false])(
  'recovery codes are downloaded as a text file, with scripts: %s',
  async (javaScriptEnabled) => {
    const { page, context, giveBack } = await browser.lend(javaScriptEnabled ? {} : { javaScriptEnabled })
    await signIn(page, `${fixture.baseUrl}/auth/security`)
    await page.getByRole('button', { name: 'Set up an app' }).click()
    const key = (await page.locator('code.key').first().textContent()) ?? ''
    const { computeTotp, findStep } = await import('../../src/identity/sign-in/second-factor/totp.ts')
    const { decodeBase32 } = await import('../harness/browser/factor-user.ts')
    const code = computeTotp(decodeBase32(key.replaceAll(' ', '')), findStep(fixture.app.clock.now()))
    await page.getByLabel('Code of the app').fill(code)
    await page.getByRole('button', { name: 'Turn it on' }).click()
    const codes = await page.locator('.codes code').allInnerTexts()
    expect(codes).toHaveLength(10)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('recovery-codes.txt')
    const lines = (await readFile(await download.path(), 'utf8')).split('\r\n')
    expect(lines.slice(2, 12)).toEqual(codes)
    const copy = page.getByRole('button', { name: 'Copy' })
    expect(await copy.isVisible()).toBe(javaScriptEnabled)
    if (javaScriptEnabled) {
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: fixture.baseUrl })
      await copy.click()
      await page.getByRole('button', { name: 'Copied' }).waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${codes.join('\n')}\n`)
    }
    await giveBack()
  },
)
