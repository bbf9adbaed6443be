import type { FrameLocator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { type DeliveryApp, openDelivery } from '../harness/app/delivery-app.ts'
import { findFreePort, findKeptPort } from '../harness/process/port.ts'
import { startProcess } from '../harness/process/process.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { examine, takePicture } from './console-browser.ts'
import { NO_VIOLATIONS } from './page-browser.ts'

// The example is a whole process: on a busy machine its start alone may take many seconds.
const stack = new AsyncDisposableStack()
let d: DeliveryApp
let browser: SharedBrowser
/** The example, on another site than the service: `127.0.0.1` and `localhost`. */
let platform: string
let service: string

beforeAll(async () => {
  await buildConsole()
  const port = await findFreePort()
  platform = `http://127.0.0.1:${port}`
  d = stack.use(
    await openDelivery({
      env: {
        PORT: String(await findKeptPort()),
        PORTAL_FRAME_ANCESTORS: platform,
        BRAND_NAME: 'Shipyard',
        BRAND_COLOR: '#0f766e',
        RATE_LIMIT_STRICT_PER_MINUTE: '100000',
        RATE_LIMIT_PER_MINUTE: '100000',
      },
    }),
  )
  await d.t.app.start()
  service = d.t.app.baseUrl()
  expect(new URL(service).hostname).toBe('localhost')
  const { body } = await d.call('POST', '/api/v3/identity/api-key', { name: 'platform', permissions: ['*:*'] })
  const example = startProcess({
    args: ['--import', './examples/sources.ts', 'packages/create/templates/portal/main.ts'],
    env: { SIGNALBOX_URL: service, SIGNALBOX_KEY: body.data.key, PORT: String(port) },
  })
  stack.defer(async () => void (await example.kill()))
  await example.waitForOutput(/The platform is at/)
  browser = await shareChromium()
  stack.defer(() => browser.close())
})
afterAll(() => stack.disposeAsync())

/** Blocks the cookies of frames of other sites, as Safari and Firefox do for everybody. Returns the end of it. */
async function blockThirdPartyCookies(page: Page): Promise<() => Promise<void>> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.setCookieControls', { enableThirdPartyCookieRestriction: true })
  return () => devtools.detach()
}

/** Opens a page without third-party cookies, and records what the browser complains of. */
async function openPage() {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1180, height: 860 } })
  const allowThirdPartyCookies = await blockThirdPartyCookies(page)
  const complaints: string[] = []
  page
    .on('console', (message) => complaints.push(message.text()))
    .on('pageerror', ({ message }) => complaints.push(message))
  return {
    page,
    complaints,
    [Symbol.asyncDispose]: async () => {
      await allowThirdPartyCookies()
      await giveBack()
    },
  }
}

/** Signs a customer in at the platform, which shows the portal. */
async function signIn(page: Page, email = 'ada@acme.example', password = 'acme'): Promise<FrameLocator> {
  await page.goto(platform)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const portal = page.frameLocator('iframe[title="Webhooks"]')
  await portal.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  return portal
}

const frameOf = (page: Page) => page.frames().find((item) => item.url().startsWith(service))!
const status = (page: Page) => page.getByRole('status').last().textContent()

async function makeContract(company: string): Promise<void> {
  const { body } = await d.call('GET', `/api/v3/identity/account?filters=name|eq|${company}`)
  await d.call('POST', '/api/v3/contract/contract', {
    account: body.data[0].document_id,
    name: 'Lease',
    status: 'draft',
  })
}

/** Makes a link for an account, as a platform does. */
async function makeLink(account: string, body: object = {}): Promise<string> {
  const made = await d.call('POST', `/api/v3/identity/account/${account}/portal-session`, {
    role: 'account-developer',
    ...body,
  })
  return made.body.data.url
}

test('a customer in the page of the platform does everything with a webhook of its account, without third-party cookies', async () => {
  await using opened = await openPage()
  const { page, complaints } = opened
  const portal = await signIn(page)
  const keepCookie = () => {
    // biome-ignore lint/suspicious/noDocumentCookie: whether the browser takes one is the question
    document.cookie = 'kept=1; Secure; SameSite=None'
    return document.cookie
  }
  expect(await frameOf(page).evaluate(keepCookie)).toBe('')
  await takePicture(page, 'portal-empty')

  await portal.getByRole('link', { name: 'Add a webhook' }).click()
  // This service allows some, so that the form and the service say the same.
  await portal.getByText('https on a public host, or a private target that the service allows;').waitFor()
  await portal.getByLabel('Callback URL').fill(`${d.receiver.origin}/portal`)
  await portal.getByLabel('Name', { exact: true }).fill('Orders')
  await portal.getByLabel('contract.create').check()
  await portal.getByRole('button', { name: 'Add a header' }).click()
  await portal.getByLabel('Name of header 1').fill('Authorization')
  await portal.getByLabel('Value of header 1').fill('Bearer of-the-customer')
  await portal.getByLabel('Asymmetric signature').check()
  await portal.getByLabel('Deliveries a second').fill('1000')
  await takePicture(page, 'portal-new')
  await portal.getByRole('button', { name: 'Create the webhook' }).click()
  await portal.getByRole('button', { name: 'Show', exact: true }).click()
  const secret = portal.getByTestId('secret')
  await expect.poll(() => secret.innerText()).toMatch(/^whsec_/)
  const first = await secret.innerText()
  await takePicture(page, 'portal-secret')
  await portal.getByLabel('I have stored it').check()
  await portal.getByRole('button', { name: 'Done' }).click()
  await portal.getByRole('heading', { level: 1, name: 'Orders' }).waitFor()
  await portal.getByText('At most 1,000 a second').waitFor()
  await expect.poll(() => status(page)).toBe('webhook-created')

  await portal.getByRole('button', { name: 'Deactivate' }).click()
  await portal.getByText('Orders is inactive: it gets no events until it is activated again.').waitFor()
  expect((await portal.locator('.notice').boundingBox())!.y).toBeLessThan(900)
  await takePicture(page, 'portal-undo')
  await portal.getByRole('button', { name: 'Undo' }).click()
  await portal.getByText('Undone.').waitFor()
  await portal.getByRole('button', { name: 'Deactivate' }).waitFor()
  expect(await status(page)).toBe('webhook-changed')

  await portal.getByRole('button', { name: 'Send a test' }).click()
  await portal.getByText('Success').first().waitFor()
  expect(d.receiver.requests.at(-1)).toMatchObject({
    path: '/portal',
    headers: { authorization: 'Bearer of-the-customer', 'webhook-signature': expect.stringContaining(' v1a,') },
  })
  await takePicture(page, 'portal-test')

  d.receiver.behave({ kind: 'status', status: 503, body: 'the till is closed' })
  await makeContract('Acme')
  // Longer than the session lives: the platform hands over another link, and the customer notices nothing.
  for (const ms of [0, 60_000, 300_000, 1_800_000, 7_200_000]) await d.pass(ms)
  await portal.getByRole('link', { name: 'Deliveries', exact: true }).first().click()
  await portal.getByRole('table').getByText('Exhausted').waitFor()
  await takePicture(page, 'portal-deliveries')
  await portal.getByRole('link', { name: 'contract.create' }).click()
  await portal.getByText('The receiver failed.').waitFor()
  await portal.getByText('5 of 5 scheduled attempts were made').waitFor()
  await portal.getByText('Answer of the receiver').first().click()
  await portal.getByText('the till is closed').first().waitFor()
  await takePicture(page, 'portal-failed')
  d.receiver.behave({ kind: 'status', status: 200 })
  await portal.getByRole('button', { name: 'Replay' }).click()
  await portal.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
  await portal.getByText('Success', { exact: true }).first().waitFor()
  await takePicture(page, 'portal-replayed')

  await portal.getByRole('link', { name: 'Webhooks', exact: true }).click()
  await portal.getByRole('link', { name: 'Orders' }).click()
  await portal.getByRole('button', { name: 'More actions' }).click()
  await portal.getByRole('menuitem', { name: 'Rotate the secret' }).click()
  const rotate = portal.getByRole('dialog', { name: 'Rotate the secret of Orders' })
  await rotate.getByRole('button', { name: 'Rotate the secret' }).click()
  await portal.getByRole('button', { name: 'Show', exact: true }).click()
  await expect.poll(() => secret.innerText()).toMatch(/^whsec_/)
  expect(await secret.innerText()).not.toBe(first)
  await portal.getByLabel('I have stored it').check()
  await portal.getByRole('button', { name: 'Done' }).click()
  expect(await status(page)).toBe('secret-rotated')
  await portal.getByRole('tab', { name: 'Settings' }).click()
  const key = portal.getByTestId('asymmetric-key')
  await key.getByText('/jwks').waitFor()
  await key.getByRole('button', { name: 'Rotate the key' }).click()
  await portal.getByRole('dialog').getByRole('button', { name: 'Rotate the key' }).click()
  await key.getByText('Former public key').waitFor()
  await takePicture(page, 'portal-key')

  await portal.getByRole('tab', { name: 'Settings' }).click()
  await portal.getByLabel('Deliveries a second').fill('1')
  await portal.getByRole('button', { name: 'Save', exact: true }).click()
  await portal.getByText('At most 1 a second').waitFor()
  for (let count = 0; count < 3; count += 1) await makeContract('Acme')
  await d.pass(0)
  await portal.getByText('Deliveries wait for the limit of 1 a second.').waitFor()
  await portal.getByRole('tab', { name: 'Deliveries' }).click()
  await portal.getByRole('cell', { name: 'Waits for the limit' }).first().waitFor()
  // The browser reports each answer of 401: the calls that found the session over.
  expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
})

describe('a link', () => {
  test('leaves the address before anything else, and is worth nothing afterwards', async () => {
    await using opened = await openPage()
    const { page } = opened
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Link' })).body.data.document_id
    const url = await makeLink(account, { return_url: `${platform}/`, external_user: 'Jo' })
    const asked: string[] = []
    page.on('request', (request) => asked.push(`${request.url()} ${request.headers().referer ?? ''}`))
    await page.goto(url)
    await page.getByText('No webhook yet').waitFor()
    const token = url.split('#token=')[1] ?? ''
    expect(page.url()).toBe(`${service}/portal#/`)
    expect(asked.filter((text) => text.includes(token) || text.includes('referer'))).toEqual([])
    expect(await page.context().cookies()).toEqual([])
    expect(await page.evaluate(() => [localStorage.length, sessionStorage.length])).toEqual([0, 0])
    await page.getByText('Link · Jo · Developer').waitFor()

    await page.reload()
    await page.getByText('This session is over').waitFor()
    await takePicture(page, 'portal-over')
    expect(await page.getByRole('link', { name: 'Open it again' }).getAttribute('href')).toBe(`${platform}/`)
    await page.goto('about:blank')
    await page.goto(url)
    await page.getByText('This session is over').waitFor()
  })

  test('opens a session that ends with its page', async () => {
    await using opened = await openPage()
    const page = await opened.page.context().newPage()
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Leave' })).body.data.document_id
    await page.goto(await makeLink(account))
    await page.getByText('No webhook yet').waitFor()
    await page.close()
    const list = () => d.call('GET', `/api/v3/identity/account/${account}/portal-session`)
    await expect.poll(async () => (await list()).body.data[0].status).toBe('ended')
  })

  test('is shown in the language and the scheme of the platform, with its role', async () => {
    await using opened = await openPage()
    const { page } = opened
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Werft' })).body.data.document_id
    await page.goto(await makeLink(account, { language: 'de', theme: 'dark', role: 'account-viewer' }))
    await page.getByText('Noch keine Webhooks').waitFor()
    expect(await page.getAttribute('html', 'data-mantine-color-scheme')).toBe('dark')
    expect(await page.getAttribute('html', 'lang')).toBe('de')
    expect(await page.getByRole('link', { name: 'Webhook hinzufügen' }).count()).toBe(0)
  })

  test('says in the language of the platform what an event means', async () => {
    await using opened = await openPage()
    const { page } = opened
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Kai' })).body.data.document_id
    const own = { internal: 'pier.free', description: 'A pier is free', is_tenant_visible: true }
    await d.call('POST', '/api/v3/webhook/event', own)
    await page.goto(await makeLink(account, { language: 'de' }))
    await page.getByRole('link', { name: 'Ereignisse' }).click()
    await page.getByRole('row', { name: 'contract.create' }).getByText('Einen Vertrag anlegen').waitFor()
    await page.getByRole('row', { name: 'pier.free' }).getByText('A pier is free').waitFor()
  })

  test('says in the language of the platform what the API refuses', async () => {
    await using opened = await openPage()
    const { page } = opened
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Reederei' })).body.data.document_id
    const { id: webhook } = await d.makeWebhook({ account, url: `${d.receiver.origin}/port` })
    await page.goto(await makeLink(account, { language: 'de' }))
    await page.getByText('Reederei').first().waitFor()
    await page.evaluate((id) => {
      location.hash = `#/webhooks/${id}`
    }, webhook)
    await page.getByRole('tab', { name: 'Einstellungen' }).click()
    await page.getByLabel('Callback-URL').fill('https://10.1.2.3/hooks')
    await page.getByRole('button', { name: 'Speichern', exact: true }).click()
    await page.getByText(/^Der Host der URL ist nicht öffentlich erreichbar\./).waitFor()
  })
})

describe('a frame', () => {
  test('is refused to a page of another origin than the listed ones', async () => {
    await using opened = await openPage()
    const { page } = opened
    const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Framed' })).body.data.document_id
    const url = await makeLink(account)
    const other = await findFreePort()
    await page.route(`http://127.0.0.1:${other}/**`, (route) =>
      route.fulfill({ contentType: 'text/html', body: `<iframe src="${url}"></iframe>` }),
    )
    await page.goto(`http://127.0.0.1:${other}/`)
    await expect.poll(() => page.frames()[1]?.url()).toBe('chrome-error://chromewebdata/')
    const { body } = await d.call('GET', `/api/v3/identity/account/${account}/portal-session`)
    expect(body.data[0].status).toBe('waiting')
  })

  test('is as high as its content, and listens to its parent alone', async () => {
    await using opened = await openPage()
    const { page } = opened
    const portal = await signIn(page, 'bob@globex.example', 'globex')
    const height = async () => (await page.locator('iframe').boundingBox())?.height ?? 0
    await expect.poll(height).toBeGreaterThan(200)
    const content = await frameOf(page).evaluate(
      () => document.getElementById('console')?.getBoundingClientRect().height,
    )
    await expect.poll(height).toBe(Math.ceil(content ?? 0))
    // A window that is not the parent sends the same message: nothing comes back.
    const answered = await frameOf(page).evaluate(() => {
      const { port1, port2 } = new MessageChannel()
      const { promise, resolve } = Promise.withResolvers<string>()
      port1.onmessage = () => resolve('answered')
      window.postMessage({ type: 'signalbox-portal:connect' }, location.origin, [port2])
      requestAnimationFrame(() => requestAnimationFrame(() => resolve('silent')))
      return promise
    })
    expect(answered).toBe('silent')
    await portal.getByText('No webhook yet').waitFor()
  })
})

test('every screen has no accessibility fault, light and dark, and fits a phone', async () => {
  await using opened = await openPage()
  const { page } = opened
  const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Screens' })).body.data.document_id
  const { id } = await d.makeWebhook({ account, url: `${d.receiver.origin}/screens` })
  d.receiver.behave({ kind: 'status', status: 404 })
  await makeContract('Screens')
  await d.pass(0)
  const { body } = await d.call('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${id}`)
  await page.goto(await makeLink(account))
  const screens = [
    ['webhooks', 'Failures in a row'],
    ['new', 'Create the webhook'],
    [`webhooks/${id}`, 'HTTP 404'],
    ['deliveries', 'HTTP 404'],
    [`deliveries/${body.data[0].document_id}`, 'Nothing answers at this path.'],
    ['events', 'contract.create'],
    ['limits', 'Subscriptions to events'],
  ] as const
  const found: Record<string, object> = {}
  for (const [path, text] of screens) {
    await page.setViewportSize({ width: 1180, height: 860 })
    await page.evaluate((hash) => {
      location.hash = hash
    }, `#/${path}`)
    await page.getByText(text).first().waitFor()
    await page.locator('.mantine-Skeleton-root, main [aria-busy="true"]').first().waitFor({ state: 'detached' })
    const name = path
      .split('/')
      .map((part) => part.slice(0, 12))
      .join('-')
    found[path] = await examine(page, `portal-${name}`)
  }
  expect(found).toEqual(Object.fromEntries(screens.map(([path]) => [path, { ...NO_VIOLATIONS, isTooWide: false }])))
})
