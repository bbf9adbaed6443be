import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { type DeliveryApp, openDelivery } from '../harness/app/delivery-app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

const OPERATOR = { email: 'operator@example.test', name: 'Olga Operator', password: 'correct horse battery' }

/** A folder for pictures of the screens; none unless it is given. */
const PICTURES = process.env.CONSOLE_PICTURES

let d: DeliveryApp
let origin: string
let browser: SharedBrowser

beforeAll(async () => {
  await buildConsole()
  d = await openDelivery({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000', RATE_LIMIT_PER_MINUTE: '100000' } })
  await d.t.app.start()
  origin = d.t.app.baseUrl()
  await createAdministrator()
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await d?.[Symbol.asyncDispose]()
})

async function createAdministrator(): Promise<void> {
  const { password, ...user } = OPERATOR
  const id = await createUserWithPassword(d.t, user, password)
  const { body } = await d.call('GET', '/api/v3/identity/role?filters=name|eq|administrator')
  await d.call('PATCH', `/api/v3/identity/user/${id}`, { roles: [body.data[0].document_id] })
}

/** Opens a screen as the operator, and records what the browser complains of and asks of others. */
async function open(path: string, options: { width?: number } = {}) {
  const context = await browser.newContext({ baseURL: origin, viewport: { width: options.width ?? 1280, height: 900 } })
  const page = await context.newPage()
  const complaints: string[] = []
  page
    .on('console', (message) => complaints.push(message.text()))
    .on('pageerror', ({ message }) => complaints.push(message))
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) complaints.push(request.url())
  })
  await page.goto(path)
  await page.getByLabel('E-mail address').fill(OPERATOR.email)
  await page.getByLabel('Password', { exact: true }).fill(OPERATOR.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() }
}

async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return
  await mkdir(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

describe('an operator, in the browser alone', () => {
  test('makes a webhook, sees a test arrive, and finds, reads and replays what failed', async () => {
    await using opened = await open('/console')
    const { page, complaints } = opened
    await heading(page, 'Overview')
    await picture(page, 'overview-empty')
    await page.getByRole('link', { name: 'New webhook' }).click()
    await page.getByLabel('Callback URL').fill(`${d.receiver.origin}/console`)
    await page.getByLabel('Name', { exact: true }).fill('Billing')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('radio', { name: 'Global' }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByLabel('contract.create').check()
    await picture(page, 'webhook-new')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('button', { name: 'Create the webhook' }).click()
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await expect.poll(() => page.getByTestId('secret').innerText()).toMatch(/^whsec_/)
    await picture(page, 'webhook-secret')
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await heading(page, 'Billing')

    await page.getByRole('button', { name: 'Send a test', exact: true }).click()
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Success').waitFor()
    expect(d.receiver.requests.at(-1)?.path).toBe('/console')
    await picture(page, 'delivery-success')

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
    await picture(page, 'delivery-retrying')
    // Left while hours pass: a page that polls meanwhile sees its session expire.
    const delivery = page.url()
    await page.goto('about:blank')
    for (const ms of [60_000, 300_000, 1_800_000, 7_200_000]) await d.pass(ms)
    await page.goto(delivery)
    await drawer.getByText('Exhausted').waitFor()
    await drawer.getByText('5 of 5 scheduled attempts were made').waitFor()
    await picture(page, 'delivery-exhausted')
    d.receiver.behave({ kind: 'status', status: 200 })
    await drawer.getByRole('button', { name: 'Replay' }).click()
    await page.getByRole('dialog', { name: 'Replay the delivery' }).getByRole('button', { name: 'Replay' }).click()
    await drawer.getByText('Success', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })
})

/** Every screen, with what stands on it once it has loaded. */
const SCREENS = [
  ['overview', 'Latest failures'],
  ['deliveries', 'contract.create'],
  ['webhooks', 'Screens'],
  ['webhooks/new', 'Callback URL'],
  ['events', 'contract.create'],
  ['users', OPERATOR.name],
  ['apps', 'Partner'],
  ['apps/new', 'Register the app'],
  ['audit', 'webhook.create'],
  ['health', 'webhook-out'],
  ['nowhere', 'There is no such page.'],
] as const

describe('the screens', () => {
  let ids: { webhook: string; dispatch: string; event: string; user: string; app: string }
  beforeAll(async () => {
    const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/screens` })
    await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { name: 'Screens' })
    d.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
    await d.emit(3)
    await d.pass(0)
    const client = {
      name: 'Partner',
      type: 'public',
      redirect_uris: ['https://partner.example/back'],
      scopes: ['openid'],
    }
    const app = await d.call('POST', '/api/v3/oauth/client', client)
    const { body } = await d.call('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${id}`)
    const [row] = body.data
    const users = await d.call('GET', '/api/v3/identity/user')
    const user = users.body.data.find(({ email }: { email: string }) => email === OPERATOR.email).document_id
    ids = { webhook: id, dispatch: row.document_id, event: row.event_id, user, app: app.body.data.document_id }
  })

  test('have no accessibility fault, light and dark, and fit a phone', async () => {
    await using opened = await open('/console/health')
    const { page, complaints } = opened
    await heading(page, 'Health')
    const screens = [
      ...SCREENS,
      [`webhooks/${ids.webhook}`, '3 deliveries failed in a row'],
      [`webhooks/${ids.webhook}?tab=events`, 'Replace the events'],
      [`webhooks/${ids.webhook}?tab=deliveries`, 'contract.create'],
      [`webhooks/${ids.webhook}?tab=testing`, 'Examine'],
      [`webhooks/${ids.webhook}?tab=verify`, 'createHmac'],
      [`webhooks/${ids.webhook}?tab=settings`, 'Danger zone'],
      [`webhooks/${ids.webhook}?tab=history`, 'webhook.update'],
      [`deliveries/${ids.dispatch}`, 'Why, and what helps'],
      [`events/${ids.event}`, 'Who got it, and who did not'],
      [`users/${ids.user}`, 'Sign out everywhere'],
      [`apps/${ids.app}`, 'https://partner.example/back'],
    ] as const
    const found: Record<string, object> = {}
    for (const [path, text] of screens) {
      await page.setViewportSize({ width: 1280, height: 900 })
      await page.goto(`/console/${path}`)
      await page
        .getByText(text)
        .first()
        .waitFor({ timeout: 8_000 })
        .catch(() => {
          throw new Error(`${path}: ${text}`)
        })
      // Until every part has loaded: axe sees what is there.
      await page.locator('.mantine-Skeleton-root, [aria-busy="true"]').first().waitFor({ state: 'detached' })
      const name = path.replaceAll(/[/?=]|[0-9a-f]{8}-[\w-]+/g, '-')
      await picture(page, name)
      const violations = await findViolationsInBothSchemes(page)
      await picture(page, `${name}-dark`)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.setViewportSize({ width: 320, height: 700 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      await picture(page, `${name}-phone`)
      found[path] = { ...violations, isTooWide: width > 320 }
    }
    const wanted = screens.map(([path]) => [path, { ...NO_VIOLATIONS, isTooWide: false }])
    expect(found).toEqual(Object.fromEntries(wanted))
    expect(complaints).toEqual([])
  })
})
