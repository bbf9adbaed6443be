import { randomBytes } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import type { Browser, Page } from 'playwright-core'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { launchChromium } from '../../test/browser/chromium.ts'
import { limit, startProgram } from '../running-service.ts'
import { listConsoleRoutes, ROWS } from './console-routes.ts'

/**
 * Takes pictures of every screen of the console and of the portal in both themes and at phone width, from a service of its own with sample
 * data: `npm run pictures -- <folder>`. With `--docs` those of the guide and of the README are replaced as well.
 */

const ROOT = join(import.meta.dirname, '..', '..')

/** Pictures of the documentation, by the name that the script gives them. */
const DOCUMENTED = {
  'overview.png': 'overview.png',
  'deliveries-id-dark.png': 'delivery.png',
  'webhooks-id.png': 'webhook.png',
  'events-id.png': 'event.png',
  'overview-phone.png': 'phone.png',
  'portal-deliveries.png': 'portal.png',
  'portal-webhooks-phone.png': 'portal-phone.png',
} as const
const DOCS_FOLDER = join(ROOT, 'docs', 'guides', 'screens', 'console')

/** Largest picture of the documentation, in bytes. */
const DOCUMENTED_BYTES = 150_000

/** How a screen is taken. Sizes in CSS pixels. */
const VIEWS = [
  { suffix: '', width: 1180, height: 760, colorScheme: 'light' },
  { suffix: '-dark', width: 1180, height: 760, colorScheme: 'dark' },
  { suffix: '-phone', width: 390, height: 760, colorScheme: 'light' },
] as const

/** Screens of the tenants' portal, by their place in its address. */
const PORTAL_SCREENS = ['webhooks', 'new', 'deliveries', 'events', 'limits'] as const

const START_LIMIT_MS = 180_000
const SCREEN_LIMIT_MS = 30_000
const EMAIL = 'admin@signalbox.localhost'

/**
 * Ends when nothing of the page has been loading for half a second: what was loaded may itself load a chart. A text, so that
 * it runs in the page.
 */
const BE_CALM = `new Promise((resolve) => {
  let sinceMs = performance.now()
  const look = (nowMs) => {
    if (document.querySelector('.mantine-Skeleton-root, .mantine-Loader-root, [aria-busy="true"]')) sinceMs = nowMs
    if (nowMs - sinceMs > 500) resolve()
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})`

await new Command('pictures')
  .description('takes pictures of every screen of the console and of the portal')
  .argument('[folder]', 'where they are written', join(ROOT, '.signalbox', 'pictures'))
  .option('--docs', 'replaces the pictures of the documentation', false)
  .action(async (folder: string, { docs }: { docs: boolean }) => {
    await mkdir(folder, { recursive: true })
    await buildConsole()
    await withService((service) =>
      withBrowser(async (browser) => {
        await takeAll(browser, service, folder)
        await takePortal(browser, service, folder)
      }),
    )
    if (docs) await replaceDocumented(folder)
  })
  .parseAsync()

/** A running service with the sample. */
interface Service {
  origin: string
  password: string
  /** An API key of the administrator. */
  token: string
}

async function withService(use: (service: Service) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox pictures '))
  const password = randomBytes(12).toString('base64url')
  const env = { ...process.env, PORT: '0', SIGNALBOX_DATA_DIR: dataDir, SIGNALBOX_ADMIN_PASSWORD: password }
  let origin = ''
  const program = await startProgram({
    ...{ command: process.execPath, args: [join(ROOT, 'bin', 'signalbox.mjs'), 'serve', '--demo', '--sample'], env },
    limitMs: START_LIMIT_MS,
    isReady: (output) => {
      origin = /listens on (\S+)/.exec(output)?.[1] ?? ''
      return output.includes('Stop with Ctrl-C.')
    },
  })
  try {
    const token = (await readFile(join(dataDir, 'demo-token'), 'utf8')).trim()
    await use({ origin, password, token })
  } finally {
    await program.stop(20_000).catch(() => {})
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function withBrowser(use: (browser: Browser) => Promise<void>): Promise<void> {
  const browser = await launchChromium()
  try {
    await use(browser)
  } finally {
    await browser.close()
  }
}

async function takeAll(browser: Browser, service: Service, folder: string): Promise<void> {
  const context = await browser.newContext({ baseURL: service.origin, reducedMotion: 'reduce', locale: 'en' })
  const page = await context.newPage()
  page.setDefaultTimeout(SCREEN_LIMIT_MS)
  await signIn(page, service)
  await addConnection(service)
  for (const route of listConsoleRoutes()) {
    const path = await fillPath(service, route)
    await takeViews(page, { folder, name: route.replaceAll('$', '').replaceAll('/', '-') }, () =>
      page.goto(`/console/${path}`),
    )
  }
}

/** Takes the portal of an account of the sample, as a page of its own. */
async function takePortal(browser: Browser, service: Service, folder: string): Promise<void> {
  const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en' })
  const page = await context.newPage()
  page.setDefaultTimeout(SCREEN_LIMIT_MS)
  const account = await fillPath(service, 'accounts/$id')
  const answer = await fetch(
    new URL(`/api/v3/identity/${account.replace('accounts', 'account')}/portal-session`, service.origin),
    {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ role: 'account-developer' }),
    },
  )
  const { data } = (await answer.json()) as { data?: { url: string } }
  if (data === undefined) throw new Error(`the portal session was answered ${answer.status}`)
  await page.goto(data.url)
  await waitUntilShown(page)
  for (const screen of PORTAL_SCREENS) {
    await takeViews(page, { folder, name: `portal-${screen}` }, async () => {
      await page.evaluate((hash) => {
        location.hash = hash
      }, `#/${screen}`)
    })
  }
}

/** Takes a screen in each of the views; `show` leads to it. */
async function takeViews(
  page: Page,
  { folder, name }: { folder: string; name: string },
  show: () => Promise<unknown>,
): Promise<void> {
  for (const { suffix, width, height, colorScheme } of VIEWS) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
    await show()
    await waitUntilShown(page)
    const path = join(folder, `${name}${suffix}.png`)
    await page.screenshot({ path, animations: 'disabled' })
    console.log(path)
  }
}

async function signIn(page: Page, { password }: Service): Promise<void> {
  await page.goto('/console')
  await page.getByLabel('E-mail address').fill(EMAIL)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await waitUntilShown(page)
}

/** Waits until every part of the screen has loaded. */
async function waitUntilShown(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await limit(page.evaluate(BE_CALM), SCREEN_LIMIT_MS, 'loading a screen')
  await page.evaluate(() => document.fonts.ready.then(() => undefined))
}

/** Puts the id of a row in the place of `$id`. */
async function fillPath(service: Service, route: string): Promise<string> {
  if (!route.includes('$')) return route
  const lists = ROWS[route]
  if (lists === undefined) throw new Error(`the route ${route} has no row to show: add it to ROWS`)
  let [path, id] = [route, '']
  for (const list of [lists].flat()) {
    id = await findFirst(service, list.replace('{id}', id))
    path = path.replace(/\$\w+/, id)
  }
  return path
}

/** The id of the first row of a list of the API. */
async function findFirst({ origin, token }: Service, list: string): Promise<string> {
  const url = new URL(list, origin)
  url.searchParams.set('page_size', '1')
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  const { data } = (await answer.json()) as { data?: { document_id: string }[] }
  const id = data?.[0]?.document_id
  if (id === undefined) throw new Error(`${list} answered ${answer.status} without a row`)
  return id
}

/** Gives the account of the pictures a connection, which the sample has none of: it has a provider that answers. */
async function addConnection(service: Service): Promise<void> {
  const account = await findFirst(service, '/api/v3/identity/account?sort=created_at')
  const url = new URL(`/api/v3/identity/account/${account}/connection`, service.origin)
  const oidc = { issuer: 'https://login.finch.example', client_id: 'signalbox', client_secret: 'of the pictures' }
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'oidc', name: 'Finch login', is_jit: true, oidc }),
  })
  if (answer.status !== 201) throw new Error(`the connection was answered ${answer.status}`)
}

async function replaceDocumented(folder: string): Promise<void> {
  await mkdir(DOCS_FOLDER, { recursive: true })
  for (const [from, to] of Object.entries(DOCUMENTED)) {
    const { size } = await stat(join(folder, from))
    if (size > DOCUMENTED_BYTES) throw new Error(`${from} has ${size} bytes, over ${DOCUMENTED_BYTES}`)
    await copyFile(join(folder, from), join(DOCS_FOLDER, to))
  }
}
