import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccountId } from '../../src/base/id.ts'
import { type ConsoleBrowser, follow, startConsoleBrowser, takePicture, waitForHeading } from './console-browser.ts'

const VIEWER = { email: 'vera@example.test', name: 'Vera Viewer' }
const OTHER = { email: 'otto@example.test', name: 'Otto Other' }

let c: ConsoleBrowser
let account: AccountId

beforeAll(async () => {
  c = await startConsoleBrowser()
  const { call } = c.d
  const made = await call('POST', '/api/v3/identity/account', { name: 'Acme' })
  account = made.body.data.document_id
  const found = await call('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')
  const roles = [found.body.data[0].document_id]
  for (const user of [VIEWER, OTHER])
    await call('POST', `/api/v3/identity/account/${account}/member`, { user: await c.addUser(user), roles })
  await c.d.makeWebhook({ account, events: ['contract.create'] })
  await call('POST', '/api/v3/contract/contract', { account, name: 'Lease', status: 'draft' })
  await c.d.pass(0)
})
afterAll(() => c?.[Symbol.asyncDispose]())

test('who may only see an account is offered nothing in the console that is refused', async () => {
  await using opened = await c.open('/console/overview', VIEWER)
  const { page, complaints } = opened
  await waitForHeading(page, 'Overview')
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  await waitForHeading(page, 'Übersicht')

  await follow(page, `accounts/${account}`)
  await page.getByText(OTHER.name).waitFor()
  expect(await page.locator('main').getByRole('link', { name: OTHER.name }).count()).toBe(0)
  expect(await page.getByRole('columnheader', { name: 'Aktionen' }).count()).toBe(0)
  await page.getByRole('tab', { name: 'Limits' }).click()
  await page.getByRole('row', { name: 'Veröffentlichte Ereignisse pro Minute 6.000' }).waitFor()
  expect(await page.locator('main input').count()).toBe(0)

  await follow(page, 'deliveries')
  await page.getByRole('link', { name: 'contract.create' }).waitFor()
  expect(await page.locator('main').getByRole('checkbox').count()).toBe(0)

  await follow(page, 'catalogue/status')
  await page.getByText('webhook:catalogue-status').waitFor()
  expect(await page.getByRole('button', { name: 'Probelauf' }).count()).toBe(0)

  await follow(page, 'consents')
  await page.getByText('Sie haben noch keiner App Zugriff erlaubt.').waitFor()
  await follow(page, 'sessions')
  await page.getByText(/^\w+ auf \w+$/).waitFor()
  expect(await page.getByRole('columnheader', { name: 'Benutzer' }).count()).toBe(0)

  await follow(page, 'settings')
  await waitForHeading(page, 'Einstellungen')
  await page.getByText(/^\w+ auf \w+$/).waitFor()
  expect(await page.getByText('health:service').count()).toBe(0)
  await takePicture(page, 'viewer-settings')
  expect(complaints).toEqual([])
})

test('who may only see an account is asked for nothing in the portal that is refused, and a long URL takes two lines there', async () => {
  await using opened = await c.open('/console/overview', VIEWER)
  const { page } = opened
  const { call } = c.d
  const quiet = (await call('POST', '/api/v3/identity/account', { name: 'Quiet' })).body.data.document_id
  const url = `https://example.com/${'path/'.repeat(390)}`
  const webhook = { name: 'Orders', account: quiet, url, events: ['contract.create'] }
  await call('POST', '/api/v3/webhook/webhook', webhook)
  const made = await call('POST', `/api/v3/identity/account/${quiet}/portal-session`, {
    role: 'account-viewer',
    language: 'de',
  })
  await page.goto(made.body.data.url)
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Orders' }) })
  await row.waitFor()
  expect((await row.boundingBox())!.height).toBeLessThan(100)
  expect(await row.getByTitle(url).count()).toBe(1)
  await page.evaluate(() => {
    location.hash = '#/deliveries'
  })
  await page.getByText('Was an Ihre Webhooks gesendet wird, erscheint hier.').waitFor()
  await takePicture(page, 'portal-viewer')
})
