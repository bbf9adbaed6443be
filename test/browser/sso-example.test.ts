import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ADA, BOB, PASSWORD, type SsoExample, startSsoExample } from '../harness/browser/sso-example.ts'
import { buildVisitor } from '../harness/browser/visitor.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import type { LentPage } from './lent-page.ts'
import { findViolations } from './page-browser.ts'

let apps: SsoExample
let browser: SharedBrowser
let lent: LentPage
let context: BrowserContext
let page: Page

beforeAll(async () => {
  apps = await startSsoExample()
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await apps?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  lent = await browser.lend()
  context = lent.context
  page = lent.page
})
afterEach(() => lent.giveBack())

/** Signs in with the form of app A that is shown now. */
async function submit(email: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

const who = () => page.locator('#who').textContent()

/** Opens app B by way of app A, where the user is signed in. */
const openTarget = () => page.goto(`${apps.a}/open?next=/orders`)

test('a user signs in on one domain and arrives signed in on the other, at a clean URL', async () => {
  const requested: string[] = []
  page.on('request', (request) => requested.push(`${request.url()} ${request.headers().referer ?? ''}`))
  await page.goto(`${apps.b}/orders`)
  expect(new URL(page.url()).origin).toBe(apps.a)
  await submit(ADA)
  await page.waitForURL(`${apps.b}/orders`)
  expect(await who()).toBe(`Signed in as ${ADA}.`)
  expect(requested.filter((item) => item.includes('sso_token')).length).toBe(1)
  expect(requested.filter((item) => item.split(' ')[1]?.includes('sso_token'))).toEqual([])
  expect(await page.evaluate('document.cookie')).toBe('')
  expect(await page.evaluate('document.referrer')).not.toContain('sso_token')
  await page.goBack()
  expect(page.url()).not.toContain('sso_token')
})

test('the session cookie of an app is HttpOnly, Lax, of its own host, and lives as long as its JWT', async () => {
  await page.goto(`${apps.b}/orders`)
  await submit(ADA)
  await page.waitForURL(`${apps.b}/orders`)
  const cookies = await context.cookies(apps.b)
  const session = cookies.find(({ name }) => name === 'signalbox_session')
  expect(session).toMatchObject({ domain: 'b.localhost', path: '/', httpOnly: true, sameSite: 'Lax', secure: false })
  const payload = JSON.parse(Buffer.from(session?.value.split('.')[1] ?? '', 'base64url').toString())
  expect(Math.abs((session?.expires ?? 0) - payload.exp)).toBeLessThan(5)
  expect((await context.cookies(apps.a)).map(({ value }) => value)).not.toContain(session?.value)
})

test('a sign-out on one domain signs out on the other', async () => {
  await page.goto(`${apps.b}/orders`)
  await submit(ADA)
  await page.waitForURL(`${apps.b}/orders`)
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.waitForURL(`${apps.b}/`)
  expect(await context.cookies(apps.b)).not.toContainEqual(expect.objectContaining({ name: 'signalbox_session' }))
  await page.goto(apps.a)
  expect(await page.getByRole('button', { name: 'Sign in' }).count()).toBe(1)
})

test('a forged token ends at a clean URL with an error that the page shows', async () => {
  await page.goto(`${apps.b}/orders?tab=2&sso_token=forged`)
  expect(page.url()).toBe(`${apps.b}/orders?tab=2&sso_error=exchange_failed`)
  expect(await page.getByRole('alert').textContent()).toContain('That did not work')
})

test('a used link ends with an error and keeps the session of the user', async () => {
  await page.goto(`${apps.b}/orders`)
  const landing = page.waitForRequest((request) => request.url().includes('sso_token'))
  await submit(ADA)
  const used = (await landing).url()
  await page.waitForURL(`${apps.b}/orders`)
  await page.goto(used)
  expect(page.url()).toBe(`${apps.b}/?sso_error=exchange_failed`)
  await page.goto(`${apps.b}/orders`)
  expect(await who()).toBe(`Signed in as ${ADA}.`)
})

test('a browser that loses its session at once is stopped, and gets in again after five seconds', async () => {
  await page.goto(`${apps.a}/`)
  await submit(ADA)
  for (let round = 0; round < 3; round += 1) {
    await openTarget()
    expect(page.url()).toBe(`${apps.b}/orders`)
    await context.clearCookies({ name: 'signalbox_session', domain: 'b.localhost' })
  }
  await openTarget()
  expect(page.url()).toBe(`${apps.b}/?sso_error=exchange_failed`)
  await expect
    .poll(async () => (await context.cookies(apps.b)).map(({ name }) => name))
    .not.toContain('signalbox_landings')
  await openTarget()
  expect(await who()).toBe(`Signed in as ${ADA}.`)
})

test('a user who arrives as somebody else is asked, and then is that user on both domains', async () => {
  await page.goto(`${apps.b}/orders`)
  await submit(ADA)
  await page.waitForURL(`${apps.b}/orders`)
  await context.clearCookies({ name: 'signalbox_session', domain: 'a.localhost' })
  await openTarget()
  await submit(BOB)
  await page.getByRole('heading', { name: 'Continue as another user?' }).waitFor()
  expect(await findViolations(page)).toEqual([])
  expect(await page.evaluate('getComputedStyle(document.body).display')).toBe('grid')
  await page.getByRole('link', { name: 'Stay as you are' }).click()
  expect(await who()).toBe(`Signed in as ${ADA}.`)
  await openTarget()
  await page.getByRole('button', { name: 'Continue as the other user' }).click()
  await page.waitForURL(`${apps.b}/orders`)
  expect(await who()).toBe(`Signed in as ${BOB}.`)
})

test('an image with a token signs nobody in and leaves the token unused', async () => {
  // A page that showed another site before may not ask for the image.
  const fresh = await browser.newPage()
  // Outside the browser, which would follow the redirect and use the token up.
  const visitor = buildVisitor()
  await visitor.visit(`${apps.a}/sign-in`, { method: 'POST', form: { email: BOB, password: PASSWORD } })
  const landing = String((await visitor.visit(`${apps.a}/open?next=/orders`)).headers.location)
  const answered = fresh.waitForResponse((response) => response.url() === landing)
  await fresh.setContent(`<img src="${landing.replaceAll('&', '&amp;')}">`)
  expect((await answered).status()).toBe(403)
  expect(await fresh.context().cookies()).toEqual([])
  await fresh.goto(landing)
  expect(await fresh.locator('#who').textContent()).toBe(`Signed in as ${BOB}.`)
})
