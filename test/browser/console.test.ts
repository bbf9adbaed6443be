import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
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

describe('an operator, in the browser alone', () => {
  test('makes a webhook, sees a test arrive, and finds, reads and replays what failed', async () => {
    await using opened = await c.open('/console')
    const { page, complaints } = opened
    await waitForHeading(page, 'Overview')
    await takePicture(page, 'overview-empty')
    await page.getByRole('link', { name: 'New webhook' }).click()
    await page.getByLabel('Callback URL').fill(`${d.receiver.origin}/console`)
    await page.getByLabel('Name', { exact: true }).fill('Billing')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('radio', { name: 'Global' }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByLabel('contract.create').check()
    await takePicture(page, 'webhook-new')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('button', { name: 'Create the webhook' }).click()
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await expect.poll(() => page.getByTestId('secret').innerText()).toMatch(/^whsec_/)
    await takePicture(page, 'webhook-secret')
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await waitForHeading(page, 'Billing')

    await page.getByRole('button', { name: 'Send a test', exact: true }).click()
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Success').waitFor()
    expect(d.receiver.requests.at(-1)?.path).toBe('/console')
    await takePicture(page, 'delivery-success')

    d.receiver.behave({ kind: 'status', status: 503, body: 'the till is closed' })
    await d.call('POST', '/api/v3/contract/contract', {
      account: (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id,
      name: 'Lease',
      status: 'draft',
    })
    await page.goto('/console/deliveries')
    await page.getByRole('link', { name: 'contract.create' }).click()
    await drawer.getByText('The receiver failed.').waitFor()
    await drawer.getByText('Attempt 2 of 5 follows').waitFor()
    await drawer.getByText('Answer of the receiver').click()
    await drawer.getByText('the till is closed').waitFor()
    await takePicture(page, 'delivery-retrying')
    // Left while hours pass: a page that polls meanwhile sees its session expire.
    const delivery = page.url()
    await page.goto('about:blank')
    for (const ms of [60_000, 300_000, 1_800_000, 7_200_000]) await d.pass(ms)
    await page.goto(delivery)
    await waitForHeading(page, 'Delivery')
    const whole = page.getByRole('main')
    await whole.getByText('Exhausted').waitFor()
    await whole.getByText('5 of 5 scheduled attempts were made').waitFor()
    await takePicture(page, 'delivery-exhausted')
    d.receiver.behave({ kind: 'status', status: 200 })
    await whole.getByRole('button', { name: 'Replay' }).click()
    await page.getByRole('dialog', { name: 'Replay the delivery' }).getByRole('button', { name: 'Replay' }).click()
    await whole.getByText('Success', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })
})

/** Screens, with what stands on them once they have loaded; the other files of the console have the rest. */
const SCREENS: readonly Screen[] = [
  ['deliveries', 'contract.create'],
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
