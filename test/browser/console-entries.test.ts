import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type ConsoleBrowser,
  follow,
  signIn,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

/** What is entered and not saved. */

const OPERATOR = { email: 'operator@example.test', name: 'Olive Operator' }

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
})
afterAll(() => c?.[Symbol.asyncDispose]())

const question = (page: Page) => page.getByRole('dialog', { name: 'Leave without saving?' })

test('another screen, another tab and the way back ask before they drop entries, and nothing asks after a save', async () => {
  const { id } = await c.d.makeWebhook()
  await using opened = await c.open('/console/webhooks')
  const { page } = opened
  await waitForHeading(page, 'Webhooks')
  await page.getByRole('row').getByRole('link').first().click()
  await page.getByRole('tab', { name: 'Settings' }).click()
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('Not saved')

  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await question(page).waitFor()
  expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
  await takePicture(page, 'leave-unsaved')
  await question(page).getByRole('button', { name: 'Stay' }).click()
  await page.getByRole('tab', { name: 'Overview' }).click()
  await question(page).waitFor()
  await page.keyboard.press('Escape')
  await question(page).waitFor({ state: 'hidden' })
  await page.goBack()
  await question(page).getByRole('button', { name: 'Stay' }).click()
  expect(await name.inputValue()).toBe('Not saved')

  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('status').filter({ hasText: 'Saved.' }).waitFor()
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await waitForHeading(page, 'Users')
  expect(await c.d.readWebhook(id)).toMatchObject({ name: 'Not saved' })

  await follow(page, `webhooks/${id}?tab=settings`)
  await name.fill('Dropped')
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await question(page).getByRole('button', { name: 'Leave' }).click()
  await waitForHeading(page, 'Users')
  expect(await c.d.readWebhook(id)).toMatchObject({ name: 'Not saved' })
})

test('a dialog asks before it drops its own entries, and closes at once without them', async () => {
  await using opened = await c.open('/console/webhooks')
  const { page } = opened
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  const open = page.getByRole('button', { name: 'New user' })
  const dialog = page.getByRole('dialog', { name: 'New user' })
  await open.click()
  await dialog.getByLabel(/^E-mail/).waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await open.click()
  await dialog.getByLabel(/^E-mail/).fill('new@example.test')
  await page.keyboard.press('Escape')
  await question(page).getByRole('button', { name: 'Stay' }).click()
  expect(await dialog.getByLabel(/^E-mail/).inputValue()).toBe('new@example.test')
  await dialog.getByRole('button', { name: 'Close' }).click()
  await question(page).getByRole('button', { name: 'Leave' }).click()
  await dialog.waitFor({ state: 'hidden' })
})

test('a role that was changed in the matrix asks before the screen is left', async () => {
  await c.d.call('POST', '/api/v3/identity/role', { name: 'clerk', permissions: ['contract:create'] })
  await using opened = await c.open('/console/roles')
  const { page } = opened
  await page.getByLabel('Part of a permission').fill('contract:')
  await page.getByLabel('clerk: contract:delete').check()
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await question(page).getByRole('button', { name: 'Stay' }).click()
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await waitForHeading(page, 'Users')
})

test('a fresh proof is given in another tab, and what was entered is sent after it', async () => {
  await using opened = await c.open('/console/settings')
  const { page } = opened
  const address = page.getByLabel('New e-mail address')
  const ask = page.getByRole('button', { name: 'Send both links' })
  await address.fill('new@example.test')
  c.d.t.clock.advance(11 * 60_000)
  await ask.click()
  await page.getByText('What you typed stays here.').waitFor()
  await takePicture(page, 'proof-beside')
  const [other] = await Promise.all([
    page.context().waitForEvent('page'),
    page.getByRole('link', { name: 'Prove who you are' }).click(),
  ])
  await other.getByRole('link', { name: 'Sign in again' }).click()
  await signIn(other, OPERATOR)
  await other.waitForURL((url) => url.pathname === '/auth/')
  await other.close()
  await Promise.all([
    page.waitForResponse((response) => new URL(response.url()).pathname === '/api/v3/auth/session'),
    page.evaluate(() => dispatchEvent(new Event('focus'))),
  ])
  expect(await address.inputValue()).toBe('new@example.test')
  await ask.click()
  await page.getByText('Your address is about to change to new@example.test.').waitFor()
})

test('the portal asks likewise before another of its screens drops entries', async () => {
  const account = (await c.d.call('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const link = `/api/v3/identity/account/${account}/portal-session`
  const { url } = (await c.d.call('POST', link, { role: 'account-developer' })).body.data
  await using opened = await c.open('/auth/')
  const { page } = opened
  await page.goto(url)
  await page.getByRole('link', { name: 'Add a webhook' }).click()
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('Orders')
  const events = page.getByRole('link', { name: 'Events', exact: true })
  await events.click()
  await question(page).getByRole('button', { name: 'Stay' }).click()
  expect(await name.inputValue()).toBe('Orders')
  expect(new URL(page.url()).hash).toBe('#/new')
  await events.click()
  await question(page).getByRole('button', { name: 'Leave' }).click()
  await waitForHeading(page, 'Events')
  await page.goBack()
  await name.waitFor()
  expect(await name.inputValue()).toBe('')
})

test('what is typed while a save is on its way stays, and is saved by the next', async () => {
  const { id } = await c.d.makeWebhook()
  await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
  const { page } = opened
  const held = Promise.withResolvers<void>()
  await page.route(`**/webhook/webhook/${id}`, async (route) => {
    if (route.request().method() === 'PATCH') await held.promise
    await route.continue()
  })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  const asked = page.waitForRequest((request) => request.method() === 'PATCH')
  await page.getByLabel('Name', { exact: true }).fill('First')
  await save.click()
  await asked
  await page.getByLabel('Description').fill('Typed meanwhile')
  held.resolve()
  await expect.poll(async () => (await c.d.readWebhook(id)).name).toBe('First')
  await save.click()
  await expect.poll(async () => (await c.d.readWebhook(id)).description).toBe('Typed meanwhile')
  await page.unroute(`**/webhook/webhook/${id}`)
})
