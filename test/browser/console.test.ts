import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
  follow,
  type Screen,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'

let c: ConsoleBrowser
let d: DeliveryApp

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
})
afterAll(() => c?.[Symbol.asyncDispose]())

/** Stores a secret that is shown once, and returns it. */
async function storeSecret(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await expect.poll(() => page.getByTestId('secret').innerText()).not.toMatch(/^•/)
  const secret = await page.getByTestId('secret').innerText()
  await page.getByLabel('I have stored it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  return secret
}

async function makeWebhook(page: Page): Promise<string> {
  await waitForHeading(page, 'Overview')
  await takePicture(page, 'overview-empty')
  await page.getByRole('link', { name: 'New webhook' }).click()
  await page.getByLabel('Callback URL').fill(`${d.receiver.origin}/console`)
  await page.getByLabel('Name', { exact: true }).fill('Billing')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('radio', { name: 'One account' }).check()
  await page.getByRole('combobox', { name: 'Account' }).click()
  await page.getByRole('option', { name: 'Example' }).click()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByLabel('contract.create').check()
  await takePicture(page, 'webhook-new')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await page.getByRole('button', { name: 'Show', exact: true }).waitFor()
  await takePicture(page, 'webhook-secret')
  const secret = await storeSecret(page)
  await waitForHeading(page, 'Billing')
  return secret
}

/** Breaks the receiver, and watches the retries of a delivery, the warning about its webhook, and the end. */
async function watchFailure(page: Page, account: string): Promise<void> {
  const drawer = page.getByRole('dialog')
  d.receiver.behave({ kind: 'status', status: 503, body: 'the till is closed' })
  await d.call('POST', '/api/v3/contract/contract', { account, name: 'Lease', status: 'draft' })
  await follow(page, 'deliveries')
  await page.getByRole('link', { name: 'contract.create' }).click()
  await drawer.getByText('The receiver failed.').waitFor()
  await drawer.getByText('Attempt 2 of 5 follows').waitFor()
  await drawer.getByText('Answer of the receiver').click()
  await drawer.getByText('the till is closed').waitFor()
  await takePicture(page, 'delivery-retrying')
  // Left while hours pass: a page that polls meanwhile sees its session expire.
  await page.goto('about:blank')
  for (const ms of [60_000, 300_000, 1_800_000, 7_200_000]) await d.pass(ms)
  await page.goto('/console/webhooks')
  await page.getByRole('link', { name: 'Billing' }).click()
  await page.getByText('1 delivery failed in a row').waitFor()
  await takePicture(page, 'webhook-warning')
}

/** Finds the failed delivery in the ledger, reads why, and replays it. */
async function replayFailed(page: Page): Promise<void> {
  await follow(page, 'deliveries?status=exhausted')
  await page.getByRole('link', { name: 'contract.create' }).click()
  await page.getByRole('dialog').getByText('The receiver failed.').waitFor()
  await page.goto(new URL(page.url()).pathname)
  await waitForHeading(page, 'Delivery')
  const whole = page.getByRole('main')
  await whole.getByText('Exhausted').waitFor()
  await whole.getByText('5 of 5 scheduled attempts were made').waitFor()
  await takePicture(page, 'delivery-exhausted')
  d.receiver.behave({ kind: 'status', status: 200 })
  await whole.getByRole('button', { name: 'Replay' }).click()
  await page.getByRole('dialog', { name: 'Replay the delivery' }).getByRole('button', { name: 'Replay' }).click()
  await whole.getByText('Success', { exact: true }).waitFor()
}

async function rotateSecret(page: Page, first: string): Promise<void> {
  await follow(page, 'webhooks')
  await page.getByRole('link', { name: 'Billing' }).click()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('button', { name: 'Rotate the secret' }).first().click()
  await page
    .getByRole('dialog', { name: 'Rotate the secret of Billing' })
    .getByRole('button', { name: 'Rotate the secret' })
    .click()
  const second = await storeSecret(page)
  expect(second).toMatch(/^whsec_/)
  expect(second).not.toBe(first)
}

async function registerApp(page: Page): Promise<void> {
  await follow(page, 'apps/new')
  await page.getByRole('textbox', { name: 'Name' }).fill('Till')
  const next = page.getByRole('button', { name: 'Next' })
  await next.click()
  await page.getByRole('textbox', { name: 'Redirect URIs' }).fill('https://till.example/back')
  await next.click()
  await page.getByRole('checkbox', { name: 'refresh_token' }).waitFor()
  await next.click()
  await page.getByRole('button', { name: 'Register the app' }).click()
  expect(await storeSecret(page)).toMatch(/^sbcs_/)
  await waitForHeading(page, 'Till')
  await page.getByRole('tab', { name: 'Secrets' }).click()
  await page.getByRole('cell', { name: 'Never' }).last().waitFor()
}

const PERSON = { email: 'paula@example.test', name: 'Paula Person' }

/** Disables a user, and sees its session end in its own browser. */
async function disableUser(page: Page, id: string): Promise<void> {
  await using theirs = await c.open('/auth/devices', PERSON)
  await theirs.page.getByRole('heading', { level: 1 }).waitFor()
  await follow(page, `users/${id}?tab=sessions`)
  await page.getByRole('button', { name: 'End' }).waitFor()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page
    .getByRole('dialog', { name: `Disable user ${PERSON.name}` })
    .getByRole('button', { name: 'Disable' })
    .click()
  await page.getByText('No session is open.').waitFor()
  await theirs.page.reload()
  await theirs.page.getByLabel('Password', { exact: true }).waitFor()
}

describe('an operator, in the browser alone', () => {
  test('makes a webhook for an account, sees a test arrive, watches a failure and its warning, finds, reads and replays it, rotates the secret, registers an app, and disables a user', async () => {
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id
    const person = await c.addUser(PERSON)
    await using opened = await c.open('/console')
    const { page, complaints } = opened
    const secret = await makeWebhook(page)
    await page.getByRole('button', { name: 'Send a test', exact: true }).click()
    await page.getByRole('dialog').getByText('Success').waitFor()
    expect(d.receiver.requests.at(-1)?.path).toBe('/console')
    await takePicture(page, 'delivery-success')
    await watchFailure(page, account)
    await replayFailed(page)
    await rotateSecret(page, secret)
    await registerApp(page)
    await disableUser(page, person)
    expect(complaints).toEqual([])
  })
})

/** Screens, with what stands on them once they have loaded; the other files of the console have the rest. */
const SCREENS: readonly Screen[] = [
  ['webhooks/new', 'Callback URL'],
  ['events', 'contract.create'],
  ['apps/new', 'Runs on a server and keeps a secret.'],
]

describe('the screens', () => {
  let ids: { webhook: string; dispatch: string }
  beforeAll(async () => {
    const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/screens` })
    await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { name: 'Screens' })
    d.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
    await d.emit(3)
    await d.pass(0)
    const { body } = await d.call('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${id}`)
    const [row] = body.data
    ids = { webhook: id, dispatch: row.document_id }
  })

  test('have no accessibility fault, light and dark, and fit a phone', async () => {
    await using opened = await c.open('/console/health')
    const { page, complaints } = opened
    await waitForHeading(page, 'Health')
    const screens: Screen[] = [
      ...SCREENS,
      [`webhooks/${ids.webhook}`, '3 deliveries failed in a row'],
      [`webhooks/${ids.webhook}?tab=events`, 'Replace the events'],
      [`webhooks/${ids.webhook}?tab=deliveries`, 'contract.create'],
      [`webhooks/${ids.webhook}?tab=testing`, 'Examine'],
      [`webhooks/${ids.webhook}?tab=verify`, 'createHmac'],
      [`webhooks/${ids.webhook}?tab=settings`, 'Danger zone'],
      [`webhooks/${ids.webhook}?tab=history`, 'webhook.update'],
      [`deliveries/${ids.dispatch}`, 'Why, and what helps'],
    ]
    await expectAccessibleScreens(page, screens)
    expect(complaints).toEqual([])
  })
})
