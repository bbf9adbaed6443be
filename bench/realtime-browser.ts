import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { launchChromium } from '../test/browser/chromium.ts'
import { call, signIn } from './api-client.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import { findQuantile } from './quantile.ts'
import { POOL_SIZE, startService } from './service-process.ts'

/** Changes before the first that counts. */
const WARM_UP_CHANGES = 100

/** The most that half of the changes may take. */
const GOAL_MS = 10

/** `pusher-js`, as a page loads it. */
const PUSHER = createRequire(import.meta.url).resolve('pusher-js/dist/web/pusher.min.js')

/** State of the subscription in the page. */
interface PageState {
  Pusher: new (key: string, options: object) => { subscribe(channel: string): Channel }
  onArrival(atMs: number): void
}

interface Channel {
  bind(event: string, listener: () => void): void
  bind_global(listener: (event: string) => void): void
}

/**
 * Measures the time from a change over the API to its event in a page: Chromium with the official `pusher-js`, on a private
 * channel of the embedded server, one change after the other. The commit is after the request and before its answer.
 */
export async function measureBrowser({ changes }: { changes: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const adminPassword = randomBytes(18).toString('base64url')
    const { origin } = await startService(stack, {
      ...{ connectionString: await server.createDatabase('browser'), dataDir, poolSize: POOL_SIZE, adminPassword },
      environment: { INTEGRATION_REALTIME_EMBEDDED: 'true', SIGNALBOX_ROLES: 'api,dispatcher,realtime,maintenance' },
    })
    const { jwt } = await signIn(origin, adminPassword)
    const make = async (path: string, body: object) =>
      String((await call(origin, { jwt, method: 'POST', path: `/api/v3/${path}`, body })).data.document_id)
    const account = await make('identity/account', { name: 'Bench' })
    const contract = await make('contract/contract', { account, name: 'Bench' })
    const browser = await launchChromium()
    stack.defer(() => browser.close())
    const page = await browser.newPage()
    await subscribe(page, { origin, jwt, channel: `private-account-${account}` })
    const fromRequestMs: number[] = []
    const fromAnswerMs: number[] = []
    for (let n = -WARM_UP_CHANGES; n < changes; n += 1) {
      const arrival = waitForArrival(page)
      const body = { name: `Bench ${n}` }
      const sentAt = readTime()
      await call(origin, { jwt, method: 'PATCH', path: `/api/v3/contract/contract/${contract}`, body })
      const answeredAt = readTime()
      const arrivedAt = await arrival
      if (n < 0) continue
      fromRequestMs.push(arrivedAt - sentAt)
      fromAnswerMs.push(arrivedAt - answeredAt)
    }
    console.log(`${server.description}. ${changes} changes, one after the other.\n`)
    const describe = (what: string, ms: number[]) =>
      `${what} to arrival in the page: p50 ${findQuantile(ms, 0.5).toFixed(2)} ms, p99 ${findQuantile(ms, 0.99).toFixed(2)} ms`
    console.log(describe('From the request', fromRequestMs))
    console.log(`${describe('From its answer', fromAnswerMs)}; the commit is between both`)
    const verdict = findQuantile(fromAnswerMs, 0.5) <= GOAL_MS ? 'at goal' : 'above'
    console.log(`Goal: p50 of at most ${GOAL_MS} ms from the commit: ${verdict}.`)
  })
}

/** Subscribes in a page of the service and waits until the server says so. */
async function subscribe(page: Page, target: { origin: string; jwt: string; channel: string }): Promise<void> {
  await page.goto(`${target.origin}/livez`)
  await page.evaluate(await readFile(PUSHER, 'utf8'))
  await page.evaluate(async ({ origin, jwt, channel }) => {
    const state = globalThis as unknown as PageState
    const answer = await fetch(`${origin}/api/v3/realtime/realtime/config`)
    const { data } = (await answer.json()) as { data: Record<string, string> }
    const client = new state.Pusher(data.key ?? '', {
      cluster: data.cluster,
      wsHost: data.ws_host,
      wsPort: data.ws_port,
      forceTLS: false,
      enabledTransports: ['ws'],
      channelAuthorization: {
        endpoint: `${origin}/api/v3/realtime/realtime/auth`,
        headers: { authorization: `Bearer ${jwt}` },
      },
    })
    state.onArrival = () => {}
    const subscribed = client.subscribe(channel)
    subscribed.bind_global((event) => {
      if (!event.startsWith('pusher')) state.onArrival(performance.timeOrigin + performance.now())
    })
    await new Promise<void>((resolve) => subscribed.bind('pusher:subscription_succeeded', resolve))
  }, target)
}

/** Resolves with the time of the next event in the page, ms since 1970. */
function waitForArrival(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        ;(globalThis as unknown as PageState).onArrival = resolve
      }),
  )
}

/** Now, on the clock that the page has too, ms since 1970. */
const readTime = () => performance.timeOrigin + performance.now()
