import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type axe from 'axe-core'
import type { CDPSession, ConsoleMessage, Locator, Page, Request } from 'playwright-core'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { findKeptPort } from '../harness/process/port.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { CLEAR_STORES, type LentPage, type PageOptions } from './lent-page.ts'

/** The user of the tests of the pages. */
export const PERSON = { email: 'ada@example.test', name: 'Ada Lovelace', password: 'correct horse battery' }

/** Size of the window of a test. */
const DESKTOP = { width: 1280, height: 900 }

/** The service on a port, with one user, and a browser. */
export interface PageBrowser extends AsyncDisposable {
  app: TestApp
  origin: string
  /** Opens a browser without cookies, and records what it requests and reports. */
  open(options?: PageOptions): Promise<OpenBrowser>
}

/** One browser with a page. */
export interface OpenBrowser extends Omit<LentPage, 'giveBack'> {
  /** URLs that were requested from another origin. */
  foreign: string[]
  /** Errors of the console and of scripts: a violated policy is one. */
  complaints: string[]
  /** Makes it a browser that nobody has used, for a test that opens its own page next. Cheaper than another one. */
  beginAnew(): Promise<void>
  /** Ends the use of it. Call it at the end of a test. */
  close(): Promise<void>
}

/** Starts the service with these variables, and a browser. */
export async function startPageBrowser(env: Record<string, string> = {}): Promise<PageBrowser> {
  const port = String(await findKeptPort())
  const app = await createTestApp({
    env: { PORT: port, RATE_LIMIT_STRICT_PER_MINUTE: '100000', SIGNALBOX_ROLES: 'api', ...env },
  })
  const { password, ...user } = PERSON
  await createUserWithPassword(app, user, password)
  await app.app.start()
  const origin = app.app.baseUrl()
  let browser: SharedBrowser
  try {
    browser = await shareChromium()
  } catch (error) {
    await app[Symbol.asyncDispose]()
    throw error
  }
  return {
    app,
    origin,
    open: async (options = {}) => {
      const viewport = options.viewport ?? DESKTOP
      const lent = await browser.lend({ baseURL: origin, ...options, viewport })
      const records = recordOf(lent.page, origin)
      const beginAnew = async () => {
        await lent.context.clearCookies()
        await lent.page.evaluate(CLEAR_STORES)
        await lent.page.emulateMedia({ colorScheme: options.colorScheme ?? 'light' })
        await lent.page.setViewportSize(viewport)
        records.foreign.length = 0
        records.complaints.length = 0
      }
      const close = async () => {
        records.stop()
        await lent.giveBack()
      }
      return { ...lent, ...records, beginAnew, close }
    },
    [Symbol.asyncDispose]: async () => {
      await browser.close()
      await app[Symbol.asyncDispose]()
    },
  }
}

/** Records what a page requests and reports. */
function recordOf(page: Page, origin: string) {
  const foreign: string[] = []
  const complaints: string[] = []
  const stop = watchPage(page, {
    onComplaint: (text) => complaints.push(text),
    onRequest: (url) => {
      if (!url.startsWith(origin)) foreign.push(url)
    },
  })
  return { foreign, complaints, stop }
}

/** The browser says so when a test filled a field before the first frame, with which it moves the focus. */
const OF_QUICK_HANDS = /^Autofocus processing was blocked because a document already has a focused element/

/** Calls for each URL that a page requests, and each text of its console and of an error of its scripts, until it is stopped. */
export function watchPage(
  page: Page,
  { onRequest, onComplaint }: { onRequest: (url: string) => void; onComplaint: (text: string) => void },
): () => void {
  const listeners = {
    request: (request: Request) => onRequest(request.url()),
    console: (message: ConsoleMessage) => {
      if (!OF_QUICK_HANDS.test(message.text())) onComplaint(message.text())
    },
    pageerror: (error: Error) => onComplaint(error.message),
  }
  page.on('request', listeners.request).on('console', listeners.console).on('pageerror', listeners.pageerror)
  return () =>
    void page.off('request', listeners.request).off('console', listeners.console).off('pageerror', listeners.pageerror)
}

/** Fills the form of the sign-in page and sends it. */
export async function signIn(page: Page, path = '/auth/sign-in'): Promise<void> {
  await page.goto(path)
  await fillFirst(page.getByLabel('E-mail address'), PERSON.email)
  await page.getByLabel('Password', { exact: true }).fill(PERSON.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/**
 * Fills the field that a page focuses, as a user does, who clicks on what is drawn: the browser moves the focus with the
 * first frame, and complains when a script was faster.
 */
export async function fillFirst(field: Locator, text: string): Promise<void> {
  await field.click()
  await field.fill(text)
}

/** The protocol of the browser for each page that axe has examined. */
const sessions = new WeakMap<Page, CDPSession>()

/** The small build of axe: the same rules, and less than half of the text that a page gets and compiles. It notes the text of no element. */
const AXE = `${readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')};axe.configure({ noHtml: true })`

/** Loads axe into a page, which gets it once, as it stands, and so compiles it once too. */
async function loadAxe(page: Page): Promise<void> {
  if (await page.evaluate("'axe' in window")) return
  const session = sessions.get(page) ?? (await page.context().newCDPSession(page))
  sessions.set(page, session)
  await session.send('Runtime.evaluate', { expression: AXE })
}

/** Gives a page the session of a user, as the form does. */
export async function bringSession(
  { app, origin }: PageBrowser,
  page: Page,
  credentials: { email: string; password: string } = PERSON,
): Promise<void> {
  const { email, password } = credentials
  const { status, body } = await app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
  if (status !== 200) throw new Error(`nobody signed in: ${JSON.stringify(body)}`)
  const cookie = { name: 'signalbox_session', value: body.data.jwt as string, url: origin, httpOnly: true }
  await page.context().addCookies([cookie])
}

/** What axe looks at. */
export interface Looked {
  /** Names or tags of its rules. Default: all that it has on. */
  rules?: readonly string[] | undefined
  /** Selector of the elements. Default: the page. */
  within?: string
  /** Selectors of elements that are left out with what they hold. */
  without?: readonly string[] | undefined
}

/** The accessibility faults that axe finds in a page: rule and elements. */
export async function findViolations(page: Page, { rules, within, without }: Looked = {}): Promise<string[]> {
  await loadAxe(page)
  // Nothing else is read, and axe describes every element of the other results too if it may.
  const options = {
    resultTypes: ['violations'],
    elementRef: true,
    ...(rules && { runOnly: [...rules] }),
  } satisfies axe.RunOptions
  const context = { include: [within ?? 'html'], ...(without && { exclude: [...without] }) } satisfies axe.ContextSpec
  const describe =
    "({ id, nodes }) => id + ': ' + nodes.map(({ element }) => element.outerHTML.slice(0, 300)).join(' ')"
  const run = `axe.run(${within || without ? `${JSON.stringify(context)}, ` : ''}${JSON.stringify(options)}).then(({ violations }) => violations.map(${describe}))`
  return (await page.evaluate(run)) as string[]
}

/** The rules of axe that read colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** Whether a page has dark colours, and which of its elements are shown, as one text. */
const SHOWN = `[
  matchMedia('(prefers-color-scheme: dark)').matches,
  [...document.querySelectorAll('body *')].map((element) => Number(element.checkVisibility({ visibilityProperty: true }))).join(''),
]`

/** Two frames, and the end of the transitions that they began. */
const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => Promise.all(
  document.getAnimations().filter((each) => each.effect?.getComputedTiming().iterations !== Infinity)
    .map((each) => each.finished.catch(() => undefined)))).then(() => undefined)`

/**
 * The faults of a page in the colours of light and of dark systems, the ones that it shows first. All rules read it in these;
 * where the others show the same elements, only the rules that read colours can find more, in half of the work.
 */
export async function findViolationsInBothSchemes(page: Page, looked: Looked = {}): Promise<object> {
  const look = () => page.evaluate<[isDark: boolean, shown: string]>(`${SETTLED}.then(() => ${SHOWN})`)
  const [isDark, shown] = await look()
  const first = await findViolations(page, looked)
  await page.emulateMedia({ colorScheme: isDark ? 'light' : 'dark' })
  const isSame = (await look())[1] === shown
  const isOfColours = isSame && looked.rules === undefined
  const second = await findViolations(page, isOfColours ? { ...looked, rules: COLOUR_RULES } : looked)
  return isDark ? { light: second, dark: first } : { light: first, dark: second }
}

/** Result of `findViolationsInBothSchemes` for a page without a fault. */
export const NO_VIOLATIONS = { light: [], dark: [] }

/**
 * The texts of the headings of a page that has loaded. A locator would bring the scripts of the test tool into each page, a
 * third of a megabyte.
 */
export async function readHeadings(page: Page): Promise<string[]> {
  return (await page.evaluate("[...document.querySelectorAll('h1')].map((heading) => heading.innerText)")) as string[]
}

/** By how many pixels a page is wider than the window. */
export async function measureOverflow(page: Page): Promise<number> {
  return (await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')) as number
}
