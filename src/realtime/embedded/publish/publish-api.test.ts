import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { startTestRealtime, TEST_REALTIME_APP } from '../../../../test/harness/realtime/realtime-server.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { Observation } from '../application/state.ts'
import { buildRequestText, signText } from '../frame/signature.ts'

const database = await openForFile(createTestDatabase())
const observed: Observation[] = []
const realtime = await openForFile(startTestRealtime(database, { observe: (each) => observed.push(each) }))

interface Asked {
  method?: string
  path: string
  body?: unknown
  parameters?: Record<string, string | undefined>
  secret?: string
  /** Changes the URL after it was signed. */
  bend?: (url: string) => string
}

/** Signs and sends a request as another library would. */
async function ask({ method = 'POST', path, body, parameters = {}, secret = TEST_REALTIME_APP.secret, bend }: Asked) {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const all = {
    auth_key: TEST_REALTIME_APP.key,
    auth_timestamp: String(Math.floor(realtime.clock.now() / 1000)),
    auth_version: '1.0',
    ...(text !== undefined && { body_md5: createHash('md5').update(text).digest('hex') }),
    ...parameters,
  }
  const given = new Map(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
  const signature = signText(secret, buildRequestText(method, path, given))
  const query = [...given, ['auth_signature', signature] as const].map(
    ([name, value]) => `${name}=${encodeURIComponent(value)}`,
  )
  const url = `http://127.0.0.1:${realtime.port}${path}?${query.join('&')}`
  const answer = await fetch(bend?.(url) ?? url, { method, ...(text !== undefined && { body: text }) })
  const answered = await answer.text()
  return { status: answer.status, headers: answer.headers, text: answered, json: () => JSON.parse(answered) }
}

const event = { name: 'e', data: '{}', channel: 'c' }
const EVENTS = '/apps/app-1/events'

describe('a request', () => {
  test('that is signed is answered with JSON that nobody keeps', async () => {
    const answer = await ask({ path: EVENTS, body: event })
    expect(answer).toMatchObject({ status: 200, text: '{}\n'.trim() })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test.each<[string, Partial<Asked>]>([
    ['another secret', { secret: 'other' }],
    ['another key', { parameters: { auth_key: 'other' } }],
    ['no key', { parameters: { auth_key: undefined } }],
    ['another version', { parameters: { auth_version: '2.0' } }],
    ['no digest of the body', { parameters: { body_md5: undefined } }],
    ['the digest of another body', { parameters: { body_md5: '0'.repeat(32) } }],
    ['no timestamp', { parameters: { auth_timestamp: undefined } }],
    ['a timestamp that is no number', { parameters: { auth_timestamp: '1e9' } }],
    ['a parameter added after signing', { bend: (url) => `${url}&info=user_count` }],
    ['no signature', { bend: (url) => url.replace(/&auth_signature=.*/, '') }],
    ['an empty signature', { bend: (url) => url.replace(/auth_signature=.*/, 'auth_signature=') }],
  ])('with %s is a 401', async (_, change) => {
    const answer = await ask({ path: EVENTS, body: event, ...change })
    expect(answer.status).toBe(401)
    expect(answer.text).not.toContain(TEST_REALTIME_APP.secret)
  })

  test('is valid 600 seconds before and after its timestamp, and no longer', async () => {
    const seconds = Math.floor(realtime.clock.now() / 1000)
    for (const [offset, status] of [
      [-600, 200],
      [600, 200],
      [-601, 401],
      [601, 401],
    ] as const) {
      const parameters = { auth_timestamp: String(seconds + offset) }
      expect((await ask({ path: EVENTS, body: event, parameters })).status).toBe(status)
    }
  })

  test.each<[string, (url: string) => string]>([
    ['a parameter twice', (url) => `${url}&auth_version=1.0`],
    ['a value that hides a parameter', (url) => `${url}&x=1%26info%3Duser_count`],
    ['broken escapes', (url) => `${url}&x=%zz`],
    ['a name with other characters', (url) => `${url}&a%5B%5D=1`],
  ])('with %s is a 400', async (_, bend) => {
    expect((await ask({ path: EVENTS, body: event, bend })).status).toBe(400)
  })

  test('for an unknown application, path or method is a 404 or 405', async () => {
    for (const path of [
      '/apps/other/events',
      '/apps/__proto__/events',
      '/apps/app-1',
      '/apps',
      '/apps/app-1/events/x',
      '/apps/app-1/__proto__',
    ])
      expect((await ask({ path, body: event })).status).toBe(404)
    const answer = await ask({ method: 'GET', path: EVENTS })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST')
  })

  test('over 1 MiB is a 413', async () => {
    const body = { ...event, data: 'x'.repeat(1024 * 1024) }
    expect((await ask({ path: EVENTS, body })).status).toBe(413)
  })
})

describe('an event', () => {
  test.each<[string, unknown]>([
    ['no JSON', '{'],
    ['a list', []],
    ['no name', { ...event, name: undefined }],
    ['an empty name', { ...event, name: '' }],
    ['a name of 201 characters', { ...event, name: 'x'.repeat(201) }],
    ['a name of the protocol', { ...event, name: 'pusher_internal:subscription_succeeded' }],
    ['data that is no string', { ...event, data: {} }],
    ['no data', { ...event, data: undefined }],
    ['no channel', { ...event, channel: undefined }],
    ['no channels', { name: 'e', data: '', channels: [] }],
    ['101 channels', { name: 'e', data: '', channels: Array.from({ length: 101 }, (_, n) => `c${n}`) }],
    ['an invalid channel', { ...event, channel: 'a b' }],
    ['a channel of 165 characters', { ...event, channel: 'x'.repeat(165) }],
    ['a channel that is no string', { ...event, channel: 5 }],
    ['a reserved channel', { ...event, channel: '#other' }],
    ['a socket id that is none', { ...event, socket_id: '1' }],
    ['an unknown attribute', { ...event, info: 'secret' }],
    ['an encrypted channel beside another', { name: 'e', data: '', channels: ['private-encrypted-a', 'b'] }],
  ])('with %s is a 400', async (_, body) => {
    expect((await ask({ path: EVENTS, body })).status).toBe(400)
  })

  test('has at most 10,240 bytes of data, counted in UTF-8', async () => {
    expect((await ask({ path: EVENTS, body: { ...event, data: 'x'.repeat(10_240) } })).status).toBe(200)
    expect((await ask({ path: EVENTS, body: { ...event, data: '€'.repeat(4_000) } })).status).toBe(413)
  })

  test('answers the attributes that it asks for, of each channel once', async () => {
    const connection = await realtime.open()
    await connection.subscribe('presence-info', { user_id: 'u' })
    const channels = ['presence-info', '__proto__', 'presence-info']
    const answer = await ask({
      path: EVENTS,
      body: { name: 'e', data: '', channels, info: 'user_count,subscription_count' },
    })
    expect(answer.text).toBe(
      '{"channels":{"presence-info":{"user_count":1,"subscription_count":1},"__proto__":{"subscription_count":0}}}',
    )
    expect(connection.frames.filter((frame) => frame.event === 'e')).toHaveLength(1)
  })

  test('is told to the inspector', async () => {
    const connection = await realtime.open()
    await connection.subscribe('inspected')
    await ask({ path: EVENTS, body: { name: 'e', data: '"ü"', channel: 'inspected' } })
    expect(observed.at(-1)).toMatchObject({
      publish: { event: 'e', channels: ['inspected'], bytes: 4, source: 'api', delivered: 1 },
    })
    expect(realtime.server.listChannels('app-1')).toContainEqual({ name: 'inspected', connections: 1 })
  })
})

describe('a batch', () => {
  const BATCH = '/apps/app-1/batch_events'

  test('of 10 events is taken, one of 11 or of none is a 400', async () => {
    for (const [length, status] of [
      [10, 200],
      [11, 400],
      [0, 400],
    ] as const)
      expect((await ask({ path: BATCH, body: { batch: Array(length).fill(event) } })).status).toBe(status)
  })

  test('with one bad event publishes none, and names it', async () => {
    const connection = await realtime.open()
    await connection.subscribe('batched')
    const batch = [{ ...event, channel: 'batched' }, { ...event, channel: 'a b' }, null]
    expect(await ask({ path: BATCH, body: { batch } })).toMatchObject({
      status: 400,
      text: expect.stringContaining('batch[1]'),
    })
    await ask({
      path: BATCH,
      body: { batch: [{ name: 'last', data: '', channel: 'batched', info: 'subscription_count' }] },
    }).then((answer) => expect(answer.json()).toEqual({ batch: [{ subscription_count: 1 }] }))
    await connection.waitFor('last')
    expect(connection.frames.some((frame) => frame.event === 'e')).toBe(false)
  })
})

describe('the state', () => {
  const get = (path: string, parameters: Record<string, string> = {}) =>
    ask({ method: 'GET', path: `/apps/app-1/${path}`, parameters })

  test('lists occupied channels by prefix, without those of users', async () => {
    const connection = await realtime.open()
    connection.send({ event: 'pusher:signin', data: realtime.sdk.authenticateUser(connection.socketId, { id: 'u' }) })
    await connection.waitFor('pusher:signin_success')
    await connection.subscribe('#server-to-user-u')
    await connection.subscribe('presence-list-a', { user_id: 'u' })
    await connection.subscribe('list-b')
    expect((await get('channels', { filter_by_prefix: 'list-' })).json()).toEqual({ channels: { 'list-b': {} } })
    const counted = await get('channels', { filter_by_prefix: 'presence-list', info: 'user_count' })
    expect(counted.json()).toEqual({ channels: { 'presence-list-a': { user_count: 1 } } })
    expect((await get('channels')).text).not.toContain('#')
    expect((await get('channels', { info: 'user_count' })).status).toBe(400)
    expect((await get('channels', { info: 'nothing' })).status).toBe(400)
  })

  test('describes one channel, and the users of a presence channel', async () => {
    const connection = await realtime.open()
    await connection.subscribe('presence-one', { user_id: 'u' })
    expect((await get('channels/presence-one', { info: 'user_count,subscription_count' })).json()).toEqual({
      ...{ occupied: true, user_count: 1, subscription_count: 1 },
    })
    expect((await get('channels/empty')).json()).toEqual({ occupied: false })
    expect((await get('channels/empty', { info: 'user_count' })).status).toBe(400)
    expect((await get('channels/a%20b')).status).toBe(400)
    expect((await get('channels/presence-one/users')).json()).toEqual({ users: [{ id: 'u' }] })
    expect((await get('channels/empty/users')).status).toBe(400)
    await ask({ path: EVENTS, body: { name: 'e', data: '[1]', channel: 'cache-one' } })
    expect((await get('channels/cache-one', { info: 'cache' })).json()).toEqual({
      ...{ occupied: false, cache: { data: '[1]', ttl: 1_800 } },
    })
    expect((await get('channels/empty', { info: 'cache' })).status).toBe(400)
  })

  test('ends the connections of a user whose id needs escapes', async () => {
    const connection = await realtime.open()
    await connection.subscribe('presence-users', { user_id: 'a b/c' })
    const answer = await ask({
      path: `/apps/app-1/users/${encodeURIComponent('a b/c')}/terminate_connections`,
      body: {},
    })
    expect(answer.status).toBe(200)
    expect(await connection.closed).toMatchObject({ code: 4009 })
    expect((await ask({ path: `/apps/app-1/users/${'x'.repeat(129)}/terminate_connections`, body: {} })).status).toBe(
      400,
    )
  })
})
