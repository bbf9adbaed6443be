import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { AccountId } from '../../../src/base/id.ts'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { openRealtime, type RealtimeApp } from '../../../test/harness/app/realtime-app.ts'
import { BUSY_MS, waitFor } from '../../../test/harness/run/wait.ts'
import {
  accountChannel,
  createRealtime,
  type JoinedChannel,
  type Realtime,
  type RealtimeMessage,
} from '../src/realtime.ts'

let fixture: RealtimeApp
let account: AccountId
let foreign: AccountId
let member: Awaited<ReturnType<TestApp['signInMember']>>
const open: Realtime[] = []

/** A `fetch` that asks a service without a port. */
const fetchOf =
  (t: TestApp): typeof fetch =>
  async (url, init) => {
    const { pathname } = new URL(String(url))
    const answer = await t.app.server.inject({
      method: (init?.method ?? 'GET') as 'GET',
      url: pathname,
      headers: init?.headers as Record<string, string>,
      ...(init?.body && { payload: String(init.body) }),
    })
    return new Response(answer.body, { status: answer.statusCode })
  }

function connect(options: { t?: TestApp; token?: string; log?: (line: string) => void } = {}): Realtime {
  const { t = fixture.t, token = member.token, log } = options
  const realtime = createRealtime({
    service: 'http://signalbox.test/',
    token: async () => token,
    fetch: fetchOf(t),
    debug: log !== undefined,
    ...(log && { log }),
  })
  open.push(realtime)
  return realtime
}

const waitForState = (channel: JoinedChannel, kind: string) =>
  waitFor(`the state ${kind}`, () => channel.read().kind === kind, { describe: () => JSON.stringify(channel.read()) })

beforeAll(async () => {
  fixture = await openRealtime()
  account = await fixture.addAccount()
  foreign = await fixture.addAccount()
  member = await fixture.t.signInMember([account])
})
afterEach(() => {
  for (const realtime of open.splice(0)) realtime.close()
})
afterAll(() => fixture[Symbol.asyncDispose]())

describe('a channel', () => {
  test('of an own account is live, and brings what happens, typed', async () => {
    const channel = connect().join(accountChannel(account))
    const states: string[] = []
    channel.onState(() => states.push(channel.read().kind))
    await waitForState(channel, 'live')
    const messages: RealtimeMessage<'contract.create'>[] = []
    channel.on('contract.create', (message) => messages.push(message))
    const contract = await fixture.addContract(account)
    await fixture.t.settle()
    await waitFor('the message', () => messages.length > 0)
    expect(messages).toMatchObject([{ type: 'contract.create', data: { account, resource: 'contract', id: contract } }])
    expect(states).toEqual(['live'])
  })

  test('of another account is denied, with the reason of the service', async () => {
    const channel = connect().join(accountChannel(foreign))
    await waitForState(channel, 'denied')
    expect(channel.read()).toEqual({
      kind: 'denied',
      reason: expect.stringContaining('have no access to this channel'),
    })
  })

  test('without a valid token is denied', async () => {
    const channel = connect({ token: 'expired' }).join(accountChannel(account))
    await waitForState(channel, 'denied')
  })

  test('is joined once for all who join it, and left with the last of them', async () => {
    const realtime = connect()
    const [first, second] = [realtime.join(accountChannel(account)), realtime.join(accountChannel(account))]
    await waitForState(first, 'live')
    expect(fixture.provider.line.countJoined(accountChannel(account))).toBe(1)
    first.leave()
    first.leave()
    expect(second.read()).toEqual({ kind: 'live' })
    second.leave()
    await waitFor('the unsubscription', () => fixture.provider.line.countJoined(accountChannel(account)) === 0)
  })

  test('is denied to who loses the membership, though the connection was open', async () => {
    const user = await fixture.t.signInMember([account])
    const channel = connect({ token: user.token }).join(accountChannel(account))
    await waitForState(channel, 'live')
    await fixture.call('DELETE', `/api/v3/identity/account/${account}/member`, { user: user.userId })
    fixture.t.clock.advance(50)
    await fixture.t.app.realtime.guard?.settled()
    expect(fixture.provider.terminated).toContain(user.userId)
    await waitForState(channel, 'denied')
  })
})

describe('an interruption', () => {
  test('of the provider is shown, and ends within seconds of its return', async () => {
    const channel = connect().join(accountChannel(account))
    await waitForState(channel, 'live')
    await fixture.provider.stop()
    await waitFor('the interruption', () => channel.read().kind !== 'live')
    expect(['connecting', 'unavailable']).toContain(channel.read().kind)
    await fixture.provider.restart()
    const startedAt = performance.now()
    await waitForState(channel, 'live')
    expect(performance.now() - startedAt).toBeLessThan(12_000 + BUSY_MS)
  })

  test('by a server that shuts down is short', async () => {
    const channel = connect().join(accountChannel(account))
    await waitForState(channel, 'live')
    // It may be shorter than the time between two looks.
    const states: string[] = []
    channel.onState(() => void states.push(channel.read().kind))
    fixture.provider.line.closeAll(4100)
    await waitFor('the end of the interruption', () => states.length > 1 && states.at(-1) === 'live')
    expect(states[0]).not.toBe('live')
  })
})

test('messages that are published while the connections are closed arrive once, in order', async () => {
  const channel = connect().join(accountChannel(account))
  await waitForState(channel, 'live')
  const got: string[] = []
  channel.on('webhook.update', ({ id }) => got.push(id))
  channel.onMissed(() => got.push('missed'))
  const ids = await fixture.emit(account, 2)
  await fixture.t.settle()
  await waitFor('the first messages', () => got.length === 2)
  // The interruption may be shorter than the time between two looks.
  const states: string[] = []
  channel.onState(() => void states.push(channel.read().kind))
  fixture.provider.line.closeAll(4100)
  await waitFor('the interruption', () => states.length > 0)
  ids.push(...(await fixture.emit(account, 5)))
  await fixture.t.settle()
  await waitForState(channel, 'live')
  ids.push(...(await fixture.emit(account)))
  await fixture.t.settle()
  await waitFor('the last message', () => got.length >= ids.length)
  expect(got).toEqual(ids)
})

test('a connection that the server refuses for its key is made again with the settings that the service has then', async () => {
  let key: string | undefined = 'of-an-application-that-is-gone'
  let reads = 0
  const realtime = createRealtime({
    service: 'http://signalbox.test/',
    token: () => member.token,
    fetch: async (url, init) => {
      const answer = await fetchOf(fixture.t)(url, init)
      if (!String(url).endsWith('/config')) return answer
      reads += 1
      const { data } = (await answer.json()) as { data: object }
      return Response.json({ data: { ...data, ...(key && { key }) } })
    },
  })
  open.push(realtime)
  const channel = realtime.join(accountChannel(account))
  await waitForState(channel, 'unavailable')
  await waitFor('a second look at the settings', () => reads === 2)
  expect(channel.read()).toEqual({ kind: 'unavailable' })
  key = undefined
  await waitForState(channel, 'live')
})

test('where realtime is not configured, a channel is unavailable', async () => {
  await using t = await createTestApp()
  const channel = connect({ t }).join(accountChannel(account))
  await waitForState(channel, 'unavailable')
})

test('the debug log holds no signature, no secret and no payload', async () => {
  const lines: string[] = []
  const channel = connect({ log: (line) => lines.push(line) }).join(accountChannel(account))
  await waitForState(channel, 'live')
  const contract = await fixture.addContract(account)
  await fixture.t.settle()
  await waitFor('the message in the log', () => lines.some((line) => line.includes('contract.create')))
  const text = lines.join('\n')
  expect(text).toContain('[redacted]')
  expect(text).not.toMatch(/[0-9a-f]{64}/)
  expect(text).not.toContain(contract)
  expect(text).not.toContain(member.token)
})
