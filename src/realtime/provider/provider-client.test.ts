import PusherServer from 'pusher'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type ProviderBehaviour,
  type SimulatedProvider,
  startRealtimeProvider,
} from '../../../test/harness/realtime/realtime-provider.ts'
import { buildProviderClient, type ProviderClient } from './provider-client.ts'
import type { ProviderApp } from './provider-settings.ts'
import { isWebhookSignature, signRequest, signSubscription, signUser } from './provider-signature.ts'

const NOW = Date.UTC(2026, 8, 11, 12)
/** The keys of the examples in the documentation of Pusher Channels. */
const KEYS = { appId: '3', key: '278d425bdf160c739803', secret: '7ad3773142a6692b25b8' }

describe('the signatures', () => {
  const sdk = new PusherServer({ ...KEYS, cluster: 'eu', useTLS: true })

  test('of a request are those of the official SDK', () => {
    for (const request of [
      { method: 'GET', path: '/channels', query: { filter_by_prefix: 'private-', info: 'subscription_count' } },
      { method: 'POST', path: '/batch_events', body: '{"batch":[{"channel":"a","name":"b","data":"€"}]}' },
      { method: 'POST', path: '/users/u-1/terminate_connections', body: '{}' },
    ] as const) {
      // The SDK takes the time from the machine.
      const now = new Date()
      vi.setSystemTime(now)
      const path = signRequest(KEYS, request, now)
      const params = 'query' in request ? request.query : {}
      // Its type of a body leaves out that of a text.
      const query = sdk.createSignedQueryString({ ...request, params, path: `/apps/3${request.path}` } as never)
      vi.useRealTimers()
      const sorted = (text: string) => [...new URLSearchParams(text)].sort()
      expect(path.startsWith(`/apps/3${request.path}?`)).toBe(true)
      expect(sorted(path.slice(path.indexOf('?')))).toEqual(sorted(query))
    }
  })

  test('of a subscription and of a user are those of the official SDK', () => {
    const channel = 'private-account-01890a5d-ac96-774b-bcce-b302099a8057'
    expect(signSubscription(KEYS, { socketId: '1234.1234', channel })).toBe(
      sdk.authorizeChannel('1234.1234', channel).auth,
    )
    const user = { id: '01890a5d-ac96-774b-bcce-b302099a8057' }
    expect(signUser(KEYS, { socketId: '1234.1234', userData: JSON.stringify(user) })).toBe(
      sdk.authenticateUser('1234.1234', user).auth,
    )
  })

  test('of a subscription is that of the documentation', () => {
    expect(signSubscription(KEYS, { socketId: '1234.1234', channel: 'private-foobar' })).toMatch(
      /^278d425bdf160c739803:58df8b0c.{51}1c3a4$/,
    )
  })

  test('of a webhook must be whole, lower-case and of these bytes', () => {
    const body = Buffer.from('{"time_ms":1,"events":[]}')
    const signature = 'dec7bb9d6fb5b3b4fa8e7b5a62dc9a5ae8f2c2b4'
    const right = (sdk as unknown as { config: { token: { sign(text: string): string } } }).config.token.sign(
      body.toString(),
    )
    expect(isWebhookSignature(KEYS, { signature: right, body })).toBe(true)
    for (const wrong of [signature, '', right.toUpperCase(), right.slice(1), `${right}0`, '€'.repeat(64)])
      expect(isWebhookSignature(KEYS, { signature: wrong, body })).toBe(false)
    expect(isWebhookSignature(KEYS, { signature: right, body: Buffer.from('{}') })).toBe(false)
  })
})

describe('a request', () => {
  let provider: SimulatedProvider
  let client: ProviderClient

  const appOf = (port: number): ProviderApp => ({
    ...provider.app,
    cluster: 'test',
    origin: `http://127.0.0.1:${port}`,
    socket: { host: '127.0.0.1', port, isTls: false },
  })
  const probe = (timeoutMs = 1_000) => client.send({ method: 'GET', path: '/channels' }, { timeoutMs })

  beforeAll(async () => {
    provider = await startRealtimeProvider(() => NOW)
    client = buildProviderClient({ app: () => appOf(provider.port), clock: { now: () => NOW } })
  })
  beforeEach(() => provider.behave({ kind: 'works' }))
  afterAll(async () => {
    await client.close()
    await provider.close()
  })

  test('that the provider accepts is ok, with its object', async () => {
    provider.channels = { 'private-account-a': {} }
    expect(await probe()).toEqual({ kind: 'ok', body: { channels: { 'private-account-a': {} } } })
  })

  test.each<[string, ProviderBehaviour, object]>([
    [
      'a refusal',
      { kind: 'answers', status: 401, body: 'no' },
      { kind: 'rejected', statusCode: 401, isRetryable: false },
    ],
    ['too many requests', { kind: 'answers', status: 429 }, { kind: 'rejected', statusCode: 429, isRetryable: true }],
    ['a server error', { kind: 'answers', status: 503 }, { kind: 'failed', statusCode: 503, errorClass: 'http_5xx' }],
    [
      'a page of somebody else',
      { kind: 'answers', status: 200, body: '<html>' },
      { kind: 'failed', errorClass: 'not_json' },
    ],
    ['a list', { kind: 'answers', status: 200, body: '[]' }, { kind: 'failed', errorClass: 'not_json' }],
    ['another success', { kind: 'answers', status: 201 }, { kind: 'failed', errorClass: 'not_json' }],
    ['a closed connection', { kind: 'resets' }, { kind: 'failed', statusCode: null, errorClass: 'reset' }],
  ])('with %s is told apart', async (_what, behaviour, outcome) => {
    provider.behave(behaviour)
    expect(await probe()).toMatchObject(outcome)
  })

  test('follows no redirect', async () => {
    const before = provider.calls.length
    provider.behave({ kind: 'answers', status: 302, headers: { location: '/apps/4711/channels' } })
    expect(await probe()).toMatchObject({ kind: 'failed', statusCode: 302, errorClass: 'redirect' })
    expect(provider.calls.length).toBe(before + 1)
  })

  test.each<ProviderBehaviour>([{ kind: 'silent' }, { kind: 'drips' }])(
    'ends at its deadline when the provider is $kind',
    async (behaviour) => {
      provider.behave(behaviour)
      expect(await probe(100)).toEqual({ kind: 'failed', statusCode: null, errorClass: 'timeout' })
    },
  )

  test('to a port where nobody listens is a failure to connect', async () => {
    const gone = await startRealtimeProvider(() => NOW)
    await gone.close()
    const lost = buildProviderClient({ app: () => appOf(gone.port), clock: { now: () => NOW } })
    expect(await lost.send({ method: 'GET', path: '/channels' })).toMatchObject({ errorClass: 'connect' })
    await lost.close()
  })

  test('with a wrong secret, or at a wrong time, is refused by the provider', async () => {
    const wrong = buildProviderClient({
      app: () => ({ ...appOf(provider.port), secret: 'wrong' }),
      clock: { now: () => NOW },
    })
    expect(await wrong.send({ method: 'GET', path: '/channels' })).toMatchObject({ kind: 'rejected', statusCode: 401 })
    await wrong.close()
    const late = buildProviderClient({ app: () => appOf(provider.port), clock: { now: () => NOW + 601_000 } })
    expect(await late.send({ method: 'GET', path: '/channels' })).toMatchObject({ kind: 'rejected', statusCode: 401 })
    await late.close()
  })

  test('says nothing of the address or the signature, whatever happens', async () => {
    for (const behaviour of [
      { kind: 'resets' },
      { kind: 'silent' },
      { kind: 'answers', status: 500, body: 'secret' },
    ] as const) {
      provider.behave(behaviour)
      const text = JSON.stringify(await probe(100))
      expect(text).not.toMatch(/127\.0\.0\.1|signature|secret|auth/)
    }
  })
})
