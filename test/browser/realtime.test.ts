import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { findFreePort } from '../harness/process/port.ts'
import { startTestRealtime, TEST_REALTIME_APP, type TestRealtime } from '../harness/realtime/realtime-server.ts'
import { waitFor } from '../harness/run/wait.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'

const CLIENT_LIBRARY = createRequire(import.meta.url).resolve('pusher-js/dist/web/pusher-with-encryption.js')

let database: TestDatabase
let realtime: TestRealtime
let browser: SharedBrowser
beforeAll(async () => {
  database = await createTestDatabase()
  // A port that nobody else takes while the server is restarted.
  realtime = await startTestRealtime(database, { listenOn: await findFreePort() })
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await realtime?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

/** State that the page of a test keeps in its window. */
interface Held {
  // biome-ignore lint/suspicious/noExplicitAny: the library of the page has no types here
  Pusher: any
  // biome-ignore lint/suspicious/noExplicitAny: as above
  client: any
  events: unknown[]
  authorize(socketId: string, channel: string): Promise<object>
}

/** A page with a connected client, whose subscriptions are authorized for `user`. */
async function openPage(user: string): Promise<Page> {
  const page = await browser.newPage()
  await page.exposeFunction('authorize', (socketId: string, channel: string) =>
    realtime.sdk.authorizeChannel(socketId, channel, channel.startsWith('presence-') ? { user_id: user } : undefined),
  )
  await page.addScriptTag({ path: CLIENT_LIBRARY })
  await page.evaluate(
    ({ key, port }) => {
      const held = globalThis as unknown as Held
      held.events = []
      held.client = new held.Pusher(key, {
        ...{ cluster: '', wsHost: '127.0.0.1', wsPort: port, forceTLS: false, enabledTransports: ['ws'] },
        channelAuthorization: {
          customHandler: (
            { socketId, channelName }: { socketId: string; channelName: string },
            callback: (error: null, data: object) => void,
          ) => void held.authorize(socketId, channelName).then((data) => callback(null, data)),
        },
      })
    },
    { key: TEST_REALTIME_APP.key, port: realtime.port },
  )
  await page.waitForFunction(() => (globalThis as unknown as Held).client.connection.state === 'connected')
  return page
}

/** Subscribes and keeps every event of the channel. */
async function subscribe(page: Page, channel: string): Promise<void> {
  await page.evaluate(async (name) => {
    const held = globalThis as unknown as Held
    const subscribed = held.client.subscribe(name)
    subscribed.bind_global((event: string, data: unknown) => held.events.push([name, event, data]))
    await new Promise((resolve) => subscribed.bind('pusher:subscription_succeeded', resolve))
  }, channel)
}

const readEvents = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as Held).events as [string, string, unknown][])

/** Waits for an event in the page, and returns its data. */
async function receive(page: Page, channel: string, event: string): Promise<unknown> {
  const [, , data] = await waitFor(`${event} on ${channel}`, async () =>
    (await readEvents(page)).find(([on, name]) => on === channel && name === event),
  )
  return data
}

describe('the official client in a browser', () => {
  test('receives events of every kind of channel, decrypted where it must', async () => {
    const page = await openPage('ann')
    for (const channel of ['news', 'private-news', 'presence-news', 'private-encrypted-news', 'cache-news']) {
      await subscribe(page, channel)
      await realtime.sdk.trigger(channel, 'created', { text: `ü ${channel}` })
      expect(await receive(page, channel, 'created')).toEqual({ text: `ü ${channel}` })
    }
    await page.close()
  })

  test('sees members come and leave, and talks to them', async () => {
    const [ann, bob] = [await openPage('ann'), await openPage('bob')]
    await subscribe(ann, 'presence-room')
    await subscribe(bob, 'presence-room')
    expect(await receive(ann, 'presence-room', 'pusher:member_added')).toMatchObject({ id: 'bob' })
    await bob.evaluate(() =>
      (globalThis as unknown as Held).client.channel('presence-room').trigger('client-hi', { n: 1 }),
    )
    expect(await receive(ann, 'presence-room', 'client-hi')).toEqual({ n: 1 })
    await bob.close()
    expect(await receive(ann, 'presence-room', 'pusher:member_removed')).toMatchObject({ id: 'bob' })
    await ann.close()
  })

  test('loses a withdrawn subscription at once, and connects again after a restart of the server', async () => {
    const page = await openPage('ann')
    await subscribe(page, 'private-a')
    const socketId = await page.evaluate(() => (globalThis as unknown as Held).client.connection.socket_id as string)
    const access = { app: TEST_REALTIME_APP.id, channel: 'private-a', user: 'ann' }
    await realtime.server.notePermission({ ...access, socketId })
    await realtime.server.disconnectSubscription(access)
    expect(await receive(page, 'private-a', 'pusher:subscription_error')).toMatchObject({ status: 403 })
    await realtime.sdk.trigger('private-a', 'hidden', 1)
    const { port } = realtime
    await realtime[Symbol.asyncDispose]()
    realtime = await startTestRealtime(database, { listenOn: port })
    await page.waitForFunction(
      (before) => {
        const { connection } = (globalThis as unknown as Held).client
        return connection.state === 'connected' && connection.socket_id !== before
      },
      socketId,
      { timeout: 50_000 },
    )
    await waitFor('its subscription', () =>
      realtime.server.listChannels('app-1').some(({ name }) => name === 'private-a'),
    )
    await realtime.sdk.trigger('private-a', 'shown', 2)
    expect(await receive(page, 'private-a', 'shown')).toBe(2)
    expect((await readEvents(page)).some(([, event]) => event === 'hidden')).toBe(false)
    await page.close()
  })
})
