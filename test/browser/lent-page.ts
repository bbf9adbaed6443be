import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { keepInView, rememberShown } from './shown-pages.ts'
import { addAuthenticator, type VirtualAuthenticator } from './virtual-authenticator.ts'

/** Options of a page and of its context. */
export interface PageOptions extends BrowserContextOptions {
  /** Whether the browser has an authenticator (`addAuthenticator`). */
  hasAuthenticator?: boolean
}

/** A page alone in its context, without cookies. */
export interface LentPage {
  context: BrowserContext
  page: Page
  /** The protocol of the browser itself, for this page. */
  session: CDPSession
  authenticator: VirtualAuthenticator | undefined
  /**
   * Returns the page, for the next test that asks for one with these options. Call it at the end of a test. A page whose
   * clock was set, or that has functions or scripts of the test, ends here: no later test gets it.
   */
  giveBack(): Promise<void>
}

/** Lends pages of one browser. */
export interface PageLender {
  lend(options?: PageOptions): Promise<LentPage>
  /** Closes every page but a few that were given back, which the next test file gets. */
  close(): Promise<void>
}

/** How many pages of a browser outlive a test file: each has a process. */
const KEPT_PAGES = 3

/** The names of a window and the source of its clock: what a script for every page, or a clock of Playwright, changes. */
const GLOBALS = 'Object.getOwnPropertyNames(window).sort().join() + Date'

/** The pages of each browser that nobody uses, by their options, those given back last at the end. */
const restingPages = new WeakMap<Browser, [key: string, lent: RestingPage][]>()

interface RestingPage extends LentPage {
  /** `GLOBALS` of the page when it was opened. */
  globals: string
}

/**
 * Lends a page that an earlier test gave back, emptied, else one in a new context: a renderer process for each test and the
 * compiling of axe and of the console in it take more work than most tests.
 */
export function buildPageLender(browser: Browser): PageLender {
  const resting = restingPages.get(browser) ?? []
  restingPages.set(browser, resting)
  const used = new Set<LentPage>()
  return {
    lend: async ({ colorScheme = 'light', reducedMotion = 'no-preference', viewport, ...options } = {}) => {
      const key = JSON.stringify(options)
      const index = resting.findLastIndex(([other]) => other === key)
      const { context, page, session, authenticator, globals } =
        resting.splice(index, index < 0 ? 0 : 1)[0]?.[1] ?? (await openPage(browser, options))
      const lent: RestingPage = {
        ...{ context, page, session, authenticator, globals },
        giveBack: async () => {
          await rememberShown(page)
          await empty(lent)
          used.delete(lent)
          if ((await page.evaluate(GLOBALS)) === globals) resting.push([key, lent])
          else await context.close()
        },
      }
      used.add(lent)
      await page.emulateMedia({ colorScheme, reducedMotion, forcedColors: 'none', contrast: null, media: null })
      await page.setViewportSize(viewport ?? { width: 1280, height: 720 })
      return lent
    },
    close: async () => {
      const old = resting.splice(0, resting.length - KEPT_PAGES).map(([, lent]) => lent)
      await Promise.all([...used, ...old].map(({ context }) => context.close()))
      used.clear()
    },
  }
}

async function openPage(browser: Browser, { hasAuthenticator = false, ...options }: PageOptions) {
  const context = await browser.newContext(options)
  keepInView(context)
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  const globals = await page.evaluate<string>(GLOBALS)
  return { context, page, session, globals, authenticator: hasAuthenticator ? await addAuthenticator(page) : undefined }
}

/** What a test may listen to. A dialog that somebody listens to is not closed. */
const EVENTS = [
  'console',
  'dialog',
  'download',
  'filechooser',
  'framenavigated',
  'pageerror',
  'popup',
  'request',
] as const

/** The stores of the last origin. A page without one may not ask for them. */
export const CLEAR_STORES = 'try { localStorage.clear(); sessionStorage.clear() } catch {}'

/** Makes a page as it was when it was opened. */
async function empty({ context, page, session, authenticator }: Omit<LentPage, 'giveBack'>) {
  for (const other of context.pages()) if (other !== page) await other.close()
  for (const event of EVENTS) page.removeAllListeners(event)
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await context.unrouteAll({ behavior: 'ignoreErrors' })
  await context.setOffline(false)
  await context.clearPermissions()
  await page.evaluate(CLEAR_STORES)
  // The policy of the last page would hold for content that a test sets itself.
  await page.goto('about:blank')
  await session.send('Page.resetNavigationHistory')
  await context.clearCookies()
  await authenticator?.clear()
}
