import Pusher from 'pusher'
import { afterEach, expect, test } from 'vitest'
import {
  accountChannel,
  createRealtime,
  type JoinedChannel,
  type Realtime,
} from '../../packages/realtime/src/realtime.ts'
import { nextEvent } from '../harness/realtime/realtime-server.ts'
import { startRealtimeFixture } from '../harness/realtime/realtime-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { limit, waitFor } from '../harness/run/wait.ts'

const open: Realtime[] = []

const fixture = await openForFile(startRealtimeFixture())
const { port } = new URL(fixture.first.url)
const sdk = new Pusher({ appId: 'app-1', key: 'key-1', secret: 'secret-1', host: '127.0.0.1', port, useTLS: false })
afterEach(() => {
  for (const realtime of open.splice(0)) realtime.close()
})

/** A page that joins the channel of the account: its socket is at the first process, its calls are answered by the second. */
async function openPage() {
  const user = await fixture.addMember()
  const calls: string[] = []
  let gate: Promise<void> | undefined
  const realtime = createRealtime({
    service: fixture.first.url,
    token: () => user.jwt,
    fetch: async (url, init) => {
      await gate
      const { pathname } = new URL(String(url))
      calls.push(pathname.split('/').at(-1) ?? '')
      return fetch(new URL(pathname, fixture.other.url), init)
    },
  })
  open.push(realtime)
  const channel = realtime.join(accountChannel(fixture.account))
  const got: (string | null)[] = []
  channel.on('contract.create', ({ data }) => got.push(data.id))
  channel.onMissed(() => got.push('missed'))
  await waitForState(channel, 'live')
  return {
    ...{ user, channel, got, calls },
    /** Cuts the connection, and lets the page return when `away` has ended. */
    cut: async <Result>(away: () => Promise<Result>): Promise<Result> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      await sdk.terminateUserConnections(user.id)
      await waitFor('the interruption', () => channel.read().kind !== 'live')
      const result = await away()
      resolve()
      return result
    },
  }
}

const waitForState = (channel: JoinedChannel, kind: string) =>
  waitFor(`the state ${kind}`, () => channel.read().kind === kind, { describe: () => JSON.stringify(channel.read()) })

/** Adds contracts through the second process, and waits until the third one has published them. */
async function addContracts(count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) {
    const { body } = await fixture.other.call('POST', '/api/v3/contract/contract', {
      ...{ name: 'A contract', account: fixture.account },
    })
    ids.push(body.data.document_id)
  }
  await waitFor('the publication', async () => {
    const { rows } = await fixture.database.pool.query(
      `select from realtime_message_ended where contract = any($1) and event = 'contract.create'`,
      [ids],
    )
    return rows.length === count
  })
  return ids
}

test('a page that was away gets what was published meanwhile, in order and once, answered by another process', async () => {
  const page = await openPage()
  const [first] = await addContracts(1)
  await waitFor('the first message', () => page.got.length === 1)
  const missed = await page.cut(() => addContracts(3))
  await waitForState(page.channel, 'live')
  const [last] = await addContracts(1)
  await waitFor('the last message', () => page.got.length >= 5)
  expect(page.got).toEqual([first, ...missed, last])
  expect(page.calls).toContain('resume')
})

test('a user who lost the account meanwhile gets nothing of what was missed', async () => {
  const page = await openPage()
  await page.cut(async () => {
    await addContracts(2)
    await fixture.call('DELETE', `/api/v3/identity/account/${fixture.account}/member`, { user: page.user.id })
  })
  await waitForState(page.channel, 'denied')
  expect(page.got).toEqual([])
})

test('the official client is served as before: it gets nothing of what it missed', async () => {
  const user = await fixture.addMember()
  const client = fixture.connect(user, { to: fixture.first, through: fixture.other })
  const channel = client.subscribe(`private-account-${fixture.account}`)
  const got: string[] = []
  channel.bind('contract.create', ({ data }: { data: { id: string } }) => got.push(data.id))
  await limit(nextEvent(channel, 'pusher:subscription_succeeded'), 60_000, 'the subscription')
  client.disconnect()
  await addContracts(1)
  const again = nextEvent(channel, 'pusher:subscription_succeeded')
  client.connect()
  await limit(again, 60_000, 'the second subscription')
  const [last] = await addContracts(1)
  await waitFor('the message', () => got.length > 0)
  expect(got).toEqual([last])
})
