import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cookie, Page } from 'playwright-core'
import { expect } from 'vitest'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import type { TestAppOptions } from '../harness/app/app.ts'
import { type DeliveryApp, openDelivery } from '../harness/app/delivery-app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { findKeptPort } from '../harness/process/port.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import {
  fillFirst,
  findViolationsInBothSchemes,
  type Looked,
  measureOverflow,
  NO_VIOLATIONS,
  watchPage,
} from './page-browser.ts'

/** A user of the console. */
export interface ConsoleUser {
  email: string
  name: string
}

/** The administrator of the tests of the console. */
export const OPERATOR: ConsoleUser = { email: 'operator@example.test', name: 'Olga Operator' }

const PASSWORD = 'correct horse battery'

/** Size of the window of a test. */
const DESKTOP = { width: 1280, height: 900 }

/** A screen of the console in a browser of its own. */
export interface OpenScreen extends AsyncDisposable {
  page: Page
  /** Errors of the console and of scripts, and requests to other origins. */
  complaints: string[]
}

/** The service with a receiver, an administrator and a browser. */
export interface ConsoleBrowser extends AsyncDisposable {
  d: DeliveryApp
  origin: string
  /** Id of `OPERATOR`. */
  operator: string
  /** Creates a user with a password, and with the role of this name if one is given; its id. */
  addUser(user: ConsoleUser, role?: string): Promise<string>
  /** Opens a path of the service, which asks for a sign-in, as this user. */
  open(path: string, user?: ConsoleUser): Promise<OpenScreen>
}

/** Builds the console, starts the service with these variables and what it finds in the network, and a browser. */
export async function startConsoleBrowser(
  env: Record<string, string> = {},
  network: Pick<TestAppOptions, 'fetchProvider' | 'resolveTxt'> = {},
): Promise<ConsoleBrowser> {
  await buildConsole()
  const d = await openDelivery({
    ...network,
    env: {
      PORT: String(await findKeptPort()),
      RATE_LIMIT_STRICT_PER_MINUTE: '100000',
      RATE_LIMIT_PER_MINUTE: '100000',
      ...env,
    },
  })
  const addUser = async (user: ConsoleUser, role?: string) => {
    const id = await createUserWithPassword(d.t, { ...user }, PASSWORD)
    if (role === undefined) return id
    const { body } = await d.call('GET', `/api/v3/identity/role?filters=name|eq|${role}`)
    await d.call('PATCH', `/api/v3/identity/user/${id}`, { roles: [body.data[0].document_id] })
    return id
  }
  let browser: SharedBrowser | undefined
  try {
    await d.t.app.start()
    const operator = await addUser(OPERATOR, 'administrator')
    browser = await shareChromium()
    const origin = d.t.app.baseUrl()
    const openScreen = buildOpener(browser, origin)
    return {
      d,
      origin,
      operator,
      addUser,
      open: (path, user = OPERATOR) => openScreen(path, user),
      [Symbol.asyncDispose]: async () => {
        await browser?.close()
        await d[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await d[Symbol.asyncDispose]()
    throw error
  }
}

/** Opens screens. The session of a user goes on in the next page that the browser lends for it. */
function buildOpener(browser: SharedBrowser, baseURL: string) {
  const sessions = new Map<string, Cookie[]>()
  return async (path: string, user: ConsoleUser): Promise<OpenScreen> => {
    const { page, context, giveBack } = await browser.lend({ baseURL, viewport: DESKTOP, reducedMotion: 'reduce' })
    await context.addCookies(sessions.get(user.email) ?? [])
    const complaints: string[] = []
    const complain = (text: string) => complaints.push(text)
    const stop = watchPage(page, {
      onComplaint: complain,
      onRequest: (url) => {
        if (!url.startsWith(baseURL) && !/^(?:data|blob|about):/.test(url)) complain(url)
      },
    })
    await page.goto(path)
    if (new URL(page.url()).pathname === '/auth/sign-in') await signIn(page, user)
    return {
      page,
      complaints,
      [Symbol.asyncDispose]: async () => {
        stop()
        sessions.set(user.email, await context.cookies())
        await giveBack()
      },
    }
  }
}

/** Signs a user in on the page that asks for it. */
export async function signIn(page: Page, user: ConsoleUser): Promise<void> {
  await fillFirst(page.getByLabel('E-mail address'), user.email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** A folder for pictures of the screens; none unless it is given. */
const PICTURES = process.env.CONSOLE_PICTURES

/** Takes a picture of a page, in these colours if they are given, for the folder that CONSOLE_PICTURES names. */
export async function takePicture(page: Page, name: string, colorScheme?: 'light' | 'dark'): Promise<void> {
  if (PICTURES === undefined) return
  if (colorScheme) await page.emulateMedia({ colorScheme })
  await mkdir(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })
}

/** Waits for the first heading of a screen. */
export const waitForHeading = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

/** Path of a screen below `/console/`, and a text that stands on it once it has loaded. */
export type Screen = readonly [path: string, text: string]

/** Head and navigation, which all screens have. */
export const FRAME = ['.shell-head', '.shell-nav']

/**
 * Expects that axe finds nothing on these screens in the colours of light and of dark systems, and that they fit a phone.
 * `page` shows a screen of the console: the others are opened as its links do, since to load the script and axe for each of
 * them takes longer than to examine it. The frame of all of them is examined with the first one.
 */
export async function expectAccessibleScreens(page: Page, screens: readonly Screen[]): Promise<void> {
  const found: Record<string, object> = {}
  for (const [index, screen] of screens.entries()) {
    const [path] = screen
    await page.setViewportSize(DESKTOP)
    await visit(page, screen)
    const without = index > 0 ? FRAME : undefined
    found[path] = await examine(page, path.replaceAll(/[/?=&]|[0-9a-f]{8}-[\w-]+/g, '-'), { without })
  }
  const wanted = screens.map(([path]) => [path, { ...NO_VIOLATIONS, isTooWide: false }])
  expect(found).toEqual(Object.fromEntries(wanted))
}

/** What a screen shows until it has loaded: the router, lists and cards say so. */
const BUSY = '.mantine-Skeleton-root, [aria-busy="true"]'

/** Waits until every part of a screen has loaded: axe sees what is there. */
export const waitUntilLoaded = (page: Page) => page.locator(BUSY).first().waitFor({ state: 'detached' })

/** Follows a link of the console to a screen by its path below `/console/`, and waits until it has loaded. */
export async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate(async (to) => {
    history.pushState({}, '', to)
    await new Promise((resolve) => setTimeout(resolve))
  }, `/console/${path}`)
  await waitUntilLoaded(page)
}

/** Follows a link of the console to a screen, and waits until the screen has loaded and shows this text. */
async function visit(page: Page, [path, text]: Screen): Promise<void> {
  await follow(page, path)
  const shown = page.locator('#main, [role="dialog"]').getByText(text).first()
  await shown.waitFor({ timeout: 10_000 }).catch(() => {
    throw new Error(`${path}: ${text}`)
  })
  await waitUntilLoaded(page)
}

/** The faults of what a page shows; takes its pictures. */
export async function examine(page: Page, name: string, looked?: Looked): Promise<object> {
  await takePicture(page, `${name}-dark`, 'dark')
  await takePicture(page, name, 'light')
  const violations = await findViolationsInBothSchemes(page, looked)
  await page.setViewportSize({ width: 320, height: 700 })
  const isTooWide = (await measureOverflow(page)) > 0
  await takePicture(page, `${name}-phone`, 'light')
  return { ...violations, isTooWide }
}
