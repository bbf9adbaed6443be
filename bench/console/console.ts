import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { launchChromium } from '../../test/browser/chromium.ts'
import { openDatabaseServer } from '../database-server.ts'
import { untilInterrupted } from '../interruption.ts'
import { findQuantile } from '../quantile.ts'
import { POOL_SIZE, startService } from '../service-process.ts'
import { fillLedger } from '../table/ledger-fill.ts'
import { formatTable } from '../text-table.ts'
import { measureLoad, type PageLoad } from './page-load.ts'
import { measureScroll } from './scroll.ts'

/** Goals of a first load, and of a ledger that is scrolled. */
const GOALS = { scriptBytes: 250_000, interactiveMs: 2_000, pauseMs: 50 }

const WEBHOOKS = 50

/** First loads that are measured; the median counts. */
const LOADS = 5

/**
 * Measures the console in Chromium: what a first load transfers, when it is interactive on a slow network and a slow
 * processor, and the longest pause while a ledger of `rows` deliveries is scrolled.
 */
export async function measureConsole({ rows }: { rows: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    await buildConsole()
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const connectionString = await server.createDatabase('console')
    const adminPassword = randomBytes(18).toString('base64url')
    const { origin } = await startService(stack, {
      ...{ connectionString, dataDir, poolSize: POOL_SIZE, adminPassword },
      environment: { SIGNALBOX_ROLES: 'api', RATE_LIMIT_PER_MINUTE: '100000' },
    })
    await fill(connectionString, rows)
    const browser = await launchChromium()
    stack.defer(() => browser.close())
    const context = await signIn(browser, { origin, password: adminPassword })
    const loads: PageLoad[] = []
    for (let n = 0; n < LOADS; n++) loads.push(await measureLoad(await context.newPage(), `${origin}/console/overview`))
    console.log(`${server.description}. ${LOADS} first loads, the median of each figure.\n`)
    console.log(describeLoads(loads))
    const pauses = await measureScroll(await context.newPage(), `${origin}/console/deliveries`)
    console.log(`\n${pauses.shown} rows of a ledger of ${rows}, scrolled.\n`)
    console.log(describePauses(pauses))
  })
}

async function fill(connectionString: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await fillLedger(client, { ended: rows, waiting: 0, webhooks: WEBHOOKS, sinkOrigin: 'http://127.0.0.1:9' })
  await client.end()
}

/** A browser with the session of the administrator, and nothing of the console in its cache. */
async function signIn(
  browser: Browser,
  { origin, password }: { origin: string; password: string },
): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: origin, viewport: { width: 1280, height: 900 } })
  const page: Page = await context.newPage()
  await page.goto('/auth/sign-in')
  await page.getByLabel('E-mail address').fill('admin@signalbox.localhost')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL((url) => !url.pathname.startsWith('/auth/sign-in'))
  // The page stays: a browser whose last page closes may open no other.
  return context
}

const HEAD = ['figure', 'measured', 'goal', 'unit', '']

const judge = (value: number, goal: number) => (value <= goal ? 'at goal' : 'above')

const buildLine = (name: string, value: number, goal: number, unit: string) => [
  ...[name, value.toFixed(0), String(goal), unit, judge(value, goal)],
]

function describeLoads(loads: readonly PageLoad[]): string {
  const median = (pick: (load: PageLoad) => number) => findQuantile(loads.map(pick), 0.5)
  const scripts = median((load) => load.scriptBytes) / 1000
  const interactive = median((load) => load.interactiveMs)
  return formatTable(HEAD, [
    buildLine('scripts of a first load, compressed', scripts, GOALS.scriptBytes / 1000, 'kB'),
    ['style sheets, compressed', (median((load) => load.styleBytes) / 1000).toFixed(0), '', 'kB', ''],
    ['requests until it is interactive', median((load) => load.requests).toFixed(0), '', '', ''],
    buildLine('interactive at 1.6 Mbit/s, 150 ms, CPU 4x slower', interactive, GOALS.interactiveMs, 'ms'),
  ])
}

function describePauses({ longestMs, overGoal }: { longestMs: number; overGoal: number }): string {
  return formatTable(HEAD, [
    buildLine('longest pause of scrolling', longestMs, GOALS.pauseMs, 'ms'),
    buildLine(`pauses over ${GOALS.pauseMs} ms`, overGoal, 0, ''),
  ])
}
