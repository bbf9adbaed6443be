import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import {
  type RawConnection,
  startTestRealtime,
  type TestRealtime,
} from '../../../test/harness/realtime/realtime-server.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { RealtimeLimits } from './frame/limits.ts'

const started: TestRealtime[] = []
const database = await openForFile(createTestDatabase())
afterEach(async () => {
  for (const realtime of started.splice(0)) await realtime[Symbol.asyncDispose]()
})

async function start(limits: Partial<RealtimeLimits> = {}, allowedOrigins?: string[]): Promise<TestRealtime> {
  const realtime = await startTestRealtime(database, { limits, ...(allowedOrigins && { allowedOrigins }) })
  started.push(realtime)
  return realtime
}

/** Asks for a pong: all that was sent before has been served then. */
async function settle(connection: RawConnection): Promise<void> {
  const before = connection.frames.filter(({ event }) => event === 'pusher:pong').length
  connection.send({ event: 'pusher:ping' })
  await waitFor('a pong', () => connection.frames.filter(({ event }) => event === 'pusher:pong').length > before)
}

describe('a handshake', () => {
  test.each([
    ['/app/other?protocol=7', 4001],
    ['/app/__proto__?protocol=7', 4001],
    ['/app/constructor?protocol=7', 4001],
    ['/app/?protocol=7', 4005],
    ['/app/key-1/more?protocol=7', 4005],
    ['/app/key-1', 4008],
    ['/app/key-1?protocol=x', 4006],
    ['/app/key-1?protocol=4', 4007],
  ])('for %s is closed with %i', async (path, code) => {
    const realtime = await start()
    expect((await realtime.openRefused(path)).code).toBe(code)
    expect(realtime.server.counts()).toMatchObject({ connections: 0, refused: 1 })
  })

  test('of a page from an origin that is not allowed is closed with 4009', async () => {
    const realtime = await start({}, ['https://app.example.com'])
    const path = '/app/key-1?protocol=7'
    expect((await realtime.openRefused(path, { origin: 'https://evil.example' })).code).toBe(4009)
    await realtime.open()
  })

  test('over the limits of connections is refused: 4100 for the server, 4004 for an address, 429 for a rate', async () => {
    const path = '/app/key-1?protocol=7'
    const full = await start({ connections: 2 })
    await Promise.all([full.open(), full.open()])
    expect((await full.openRefused(path)).code).toBe(4100)
    const narrow = await start({ connectionsPerAddress: 1 })
    const { webSocket } = await narrow.open()
    expect((await narrow.openRefused(path)).code).toBe(4004)
    webSocket.close()
    await waitFor('its end', () => narrow.server.counts().connections === 0)
    await narrow.open()
    const slow = await start({ newConnectionsPerAddress: 2 })
    await Promise.all([slow.open(), slow.open()])
    expect((await slow.openRefused(path)).status).toBe(429)
    slow.clock.advance(60_000)
    await slow.open()
  })

  test('that is no WebSocket handshake is answered and ended', async () => {
    const { port } = await start()
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /app/key-1?protocol=7 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    const [head] = (await once(socket, 'data')) as [Buffer]
    expect(head.toString()).toMatch(/^HTTP\/1\.1 4\d\d /)
    await once(socket, 'close')
  })
})

describe('a message', () => {
  test.each([
    '',
    '{',
    'null',
    '[]',
    '5',
    '{}',
    '{"event":5}',
    '{"event":"__proto__"}',
    '{"event":"pusher:subscribe"}',
    '{"event":"pusher:subscribe","data":[]}',
    '{"event":"pusher:subscribe","data":{"channel":["a"]}}',
    '{"event":"pusher:subscribe","data":{"channel":"a","auth":{}}}',
    '{"event":"pusher_internal:subscription_succeeded","channel":"private-a","data":"{}"}',
    '{"event":"pusher:connection_established","data":"{}"}',
    `${'['.repeat(15_000)}${']'.repeat(15_000)}`,
  ])('%.60s is answered with an error, and the connection lives on', async (text) => {
    const realtime = await start()
    const connection = await realtime.open()
    connection.send(text)
    expect((await connection.waitFor('pusher:error')).data).toMatchObject({ code: null })
    await settle(connection)
    expect(({} as { event?: string }).event).toBeUndefined()
  })

  test('of 1 MiB, of bytes, or with broken UTF-8 ends the connection with its code', async () => {
    const realtime = await start()
    const [large, binary, broken] = await Promise.all([realtime.open(), realtime.open(), realtime.open()])
    large.send('x'.repeat(1024 * 1024))
    binary.webSocket.send(Buffer.from('{"event":"pusher:ping"}'))
    broken.webSocket.send(Buffer.from([0xff, 0xfe]), { binary: false })
    expect((await large.closed).code).toBe(1009)
    expect((await binary.closed).code).toBe(1003)
    expect((await broken.closed).code).toBe(1007)
    await waitFor('their ends', () => realtime.server.counts().connections === 0)
  })

  test('in a flood ends the connection with 4301', async () => {
    const realtime = await start({ messageBurst: 20, messagesPerSecond: 1 })
    const connection = await realtime.open()
    for (let n = 0; n < 1_000; n += 1) connection.send({ event: 'pusher:ping' })
    expect((await connection.closed).code).toBe(4301)
    expect(connection.frames.filter(({ event }) => event === 'pusher:pong').length).toBeLessThanOrEqual(20)
  })

  test('that is a ping of WebSocket counts too', async () => {
    const realtime = await start({ messageBurst: 20, messagesPerSecond: 1 })
    const connection = await realtime.open()
    for (let n = 0; n < 100; n += 1) connection.webSocket.ping()
    expect((await connection.closed).code).toBe(4301)
  })

  test('of raw bytes that are no frame ends the connection', async () => {
    const realtime = await start()
    const socket = connect(realtime.port, '127.0.0.1')
    const key = Buffer.alloc(16).toString('base64')
    socket.write(
      `GET /app/key-1?protocol=7 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`,
    )
    await once(socket, 'data')
    // Neither masked nor with a known opcode.
    socket.write(Buffer.from([0xf7, 0x7f, 1, 2, 3]))
    socket.resume()
    await once(socket, 'close')
    await waitFor('its end', () => realtime.server.counts().connections === 0)
  })
})

describe('a subscription', () => {
  test.each([
    ['private-a', undefined, 401],
    ['private-a', '', 401],
    ['private-a', 'key-1', 401],
    ['private-a', `key-1:${'0'.repeat(64)}`, 401],
    ['private-a', `other:${'0'.repeat(64)}`, 401],
    ['private-a\n', 'key-1:x', 400],
    ['a b', undefined, 400],
    ['#server-to-user-victim', undefined, 401],
    ['x'.repeat(165), undefined, 400],
  ])('to %j with the token %j is refused with %i', async (channel, auth, status) => {
    const realtime = await start()
    const connection = await realtime.open()
    connection.send({ event: 'pusher:subscribe', data: { channel, auth } })
    const refusal = await connection.waitFor('pusher:subscription_error', channel)
    expect(refusal.data).toMatchObject({ status, error: expect.any(String), type: expect.any(String) })
    await connection.waitFor('pusher:error')
    expect(realtime.server.listChannels('app-1')).toEqual([])
  })

  test('with the signature of another socket, channel, user or of a sign-in is refused', async () => {
    const realtime = await start()
    const [connection, other] = await Promise.all([realtime.open(), realtime.open()])
    const sign = (socketId: string, channel: string, member?: object) =>
      realtime.sdk.authorizeChannel(socketId, channel, member as never)
    const { auth: signin } = realtime.sdk.authenticateUser(connection.socketId, { id: 'u' })
    const own = sign(connection.socketId, 'presence-a', { user_id: 'u' })
    const tries = [
      { channel: 'private-a', ...sign(other.socketId, 'private-a') },
      { channel: 'private-b', ...sign(connection.socketId, 'private-a') },
      { channel: 'presence-b', ...own, channel_data: '{"user_id":"victim"}' },
      { channel: 'presence-c', auth: own.auth },
      { channel: 'private-c', auth: signin },
    ]
    for (const data of tries) {
      connection.send({ event: 'pusher:subscribe', data })
      expect((await connection.waitFor('pusher:subscription_error', data.channel)).data.status).toBe(401)
    }
  })

  test('to a presence channel needs data with a valid user of limited size', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    const members = [{ user_id: '' }, { user_id: 'x'.repeat(129) }, { other: 1 }, { user_id: {} }, { user_id: 'a\n' }]
    for (const [n, member] of [...members, { user_id: 'u', user_info: 'x'.repeat(3_000) }].entries()) {
      const channel = `presence-${n}`
      const token = realtime.sdk.authorizeChannel(connection.socketId, channel, member as never)
      connection.send({ event: 'pusher:subscribe', data: { channel, ...token } })
      const { data } = await connection.waitFor('pusher:subscription_error', channel)
      expect(data.status).toBe(n < members.length ? 400 : 413)
    }
  })

  test('a second time is an error of the connection, and the first one stays', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    await connection.subscribe('twice')
    connection.send({ event: 'pusher:subscribe', data: { channel: 'twice' } })
    expect((await connection.waitFor('pusher:error')).data.message).toContain('Existing subscription')
    expect(realtime.server.listChannels('app-1')).toEqual([{ name: 'twice', connections: 1 }])
  })

  test('over the limit of channels or of members is refused', async () => {
    const realtime = await start({ channelsPerConnection: 2, members: 1 })
    const [connection, other] = await Promise.all([realtime.open(), realtime.open()])
    await connection.subscribe('presence-a', { user_id: 'u' })
    await connection.subscribe('__proto__')
    connection.send({ event: 'pusher:subscribe', data: { channel: 'third' } })
    expect((await connection.waitFor('pusher:subscription_error', 'third')).data.status).toBe(429)
    const token = realtime.sdk.authorizeChannel(other.socketId, 'presence-a', { user_id: 'v' })
    other.send({ event: 'pusher:subscribe', data: { channel: 'presence-a', ...token } })
    expect((await other.waitFor('pusher:subscription_error', 'presence-a')).data.type).toBe('LimitReached')
    const same = await realtime.open()
    await same.subscribe('presence-a', { user_id: 'u' })
  })
})

describe('a sign-in', () => {
  test('with a wrong signature, without a user, or as a second user is refused with 4009', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    const sign = (user: object) => realtime.sdk.authenticateUser(connection.socketId, user as { id: string })
    const { auth } = realtime.sdk.authorizeChannel(connection.socketId, 'private-a')
    const refused = async (data: object) => {
      connection.frames.length = 0
      connection.send({ event: 'pusher:signin', data })
      expect((await connection.waitFor('pusher:error')).data.code).toBe(4009)
    }
    await refused({ auth, user_data: '{"id":"u"}' })
    await refused({ ...sign({ id: 'u' }), user_data: '{"id":"victim"}' })
    await refused(sign({ id: 'x'.repeat(129) }))
    connection.send({ event: 'pusher:signin', data: sign({ id: 'u' }) })
    await connection.waitFor('pusher:signin_success')
    await refused(sign({ id: 'v' }))
    connection.send({ event: 'pusher:subscribe', data: { channel: '#server-to-user-v' } })
    await connection.waitFor('pusher:subscription_error', '#server-to-user-v')
  })
})

describe('a client event', () => {
  test('is refused without a subscription, and on public, encrypted and user channels', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    await connection.subscribe('open')
    await connection.subscribe('private-encrypted-a')
    for (const channel of ['private-a', 'open', 'private-encrypted-a', '__proto__']) {
      connection.frames.length = 0
      connection.send({ event: 'client-x', channel, data: {} })
      expect((await connection.waitFor('pusher:error')).data.message).toContain('rejected')
    }
    expect(realtime.server.counts().published).toBe(0)
  })

  test('over 10 a second is refused with 4301, and the time restores the rate', async () => {
    const realtime = await start()
    const [from, to] = await Promise.all([realtime.open(), realtime.open()])
    for (const client of [from, to]) await client.subscribe('private-a')
    const sendMany = async () => {
      for (let n = 0; n < 15; n += 1) from.send({ event: 'client-x', channel: 'private-a', data: n })
      await settle(from)
    }
    await sendMany()
    expect((await from.waitFor('pusher:error')).data.code).toBe(4301)
    await waitFor('ten events', () => to.frames.filter(({ event }) => event === 'client-x').length === 10)
    realtime.clock.advance(1_000)
    await sendMany()
    await waitFor('twenty events', () => to.frames.filter(({ event }) => event === 'client-x').length === 20)
  })

  test('over 10,240 bytes is refused', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    await connection.subscribe('private-a')
    connection.send({ event: 'client-x', channel: 'private-a', data: '€'.repeat(4_000) })
    expect((await connection.waitFor('pusher:error')).data.message).toContain('too large')
  })
})

describe('a silent client', () => {
  test('is pinged after the activity timeout, and closed with 4201 when it does not answer', async () => {
    const realtime = await start()
    const [silent, lively] = await Promise.all([realtime.open(), realtime.open()])
    realtime.clock.advance(130_000)
    await Promise.all([silent.waitFor('pusher:ping'), lively.waitFor('pusher:ping')])
    realtime.clock.advance(1_000)
    lively.send({ event: 'pusher:pong' })
    await settle(lively)
    realtime.clock.advance(29_000)
    expect((await silent.closed).code).toBe(4201)
    await settle(lively)
  })

  test('that is not authorized in time is closed with 4009, one that is stays', async () => {
    const realtime = await start({ authorizeWithinSeconds: 30 })
    const [idle, open, authorized] = await Promise.all([realtime.open(), realtime.open(), realtime.open()])
    await open.subscribe('open')
    await authorized.subscribe('private-a')
    realtime.clock.advance(31_000)
    expect((await idle.closed).code).toBe(4009)
    expect((await open.closed).code).toBe(4009)
    await settle(authorized)
  })

  test('that never reads is cut off, and the others still receive everything', async () => {
    const realtime = await start({ waitingBytes: 200_000 })
    const [deaf, reader] = await Promise.all([realtime.open(), realtime.open()])
    for (const client of [deaf, reader]) await client.subscribe('flooded')
    deaf.webSocket.pause()
    const data = 'x'.repeat(10_000)
    let sent = 0
    while (realtime.server.counts().cut === 0 && sent < 5_000) {
      const batch = Array.from({ length: 10 }, () => ({ channel: 'flooded', name: 'e', data }))
      await realtime.sdk.triggerBatch(batch)
      sent += 10
    }
    expect(realtime.server.counts().cut).toBe(1)
    await waitFor('all events', () => reader.frames.filter(({ event }) => event === 'e').length === sent)
    await waitFor('the end of the other', () => realtime.server.counts().connections === 1)
  })
})

describe('a withdrawal', () => {
  test('ends the subscription at once, refuses its old signature, and permits it again after a new permission', async () => {
    const realtime = await start()
    const [connection, other] = await Promise.all([realtime.open(), realtime.open()])
    const access = { app: 'app-1', channel: 'private-a', user: 'u' }
    await realtime.server.notePermission({ ...access, socketId: connection.socketId })
    for (const client of [connection, other]) await client.subscribe('private-a')
    expect(await realtime.server.disconnectSubscription(access)).toBe(1)
    expect((await connection.waitFor('pusher:subscription_error')).data).toMatchObject({ status: 403 })
    await realtime.sdk.trigger('private-a', 'secret', 1)
    await other.waitFor('secret')
    const token = realtime.sdk.authorizeChannel(connection.socketId, 'private-a')
    connection.frames.length = 0
    connection.send({ event: 'pusher:subscribe', data: { channel: 'private-a', ...token } })
    await connection.waitFor('pusher:subscription_error')
    await settle(connection)
    expect(connection.frames.some(({ event }) => event === 'secret')).toBe(false)
    // A permission right after the withdrawal may have been decided before it.
    await realtime.server.notePermission({ ...access, socketId: connection.socketId })
    connection.frames.length = 0
    connection.send({ event: 'pusher:subscribe', data: { channel: 'private-a', ...token } })
    await connection.waitFor('pusher:subscription_error')
    realtime.clock.advance(5_000)
    await waitFor('a new permission to count', async () => {
      await realtime.server.notePermission({ ...access, socketId: connection.socketId })
      connection.send({ event: 'pusher:subscribe', data: { channel: 'private-a', ...token } })
      await settle(connection)
      return connection.frames.some(({ event }) => event === 'pusher_internal:subscription_succeeded')
    })
  })

  test('that overtakes the permission, the sign-in or the subscription it ends still counts', async () => {
    const realtime = await start()
    const [late, member, signedIn] = await Promise.all([realtime.open(), realtime.open(), realtime.open()])
    const access = { app: 'app-1', channel: 'presence-a', user: 'u' }
    await realtime.server.disconnectSubscription(access)
    await realtime.server.notePermission({ ...access, socketId: late.socketId })
    for (const client of [late, member]) {
      const user_id = client === late ? 'other' : 'u'
      const token = realtime.sdk.authorizeChannel(client.socketId, 'presence-a', { user_id })
      client.send({ event: 'pusher:subscribe', data: { channel: 'presence-a', ...token } })
      expect((await client.waitFor('pusher:subscription_error')).data.status).toBe(403)
    }
    await realtime.server.terminateUser({ app: 'app-1', user: 'v' })
    await realtime.server.notePermission({ app: 'app-1', channel: 'private-a', user: 'v', socketId: late.socketId })
    expect((await late.closed).code).toBe(4009)
    signedIn.send({ event: 'pusher:signin', data: realtime.sdk.authenticateUser(signedIn.socketId, { id: 'v' }) })
    expect((await signedIn.closed).code).toBe(4009)
    realtime.clock.advance(1)
    const fresh = await realtime.open()
    fresh.send({ event: 'pusher:signin', data: realtime.sdk.authenticateUser(fresh.socketId, { id: 'v' }) })
    await fresh.waitFor('pusher:signin_success')
  })

  test('comes before a subscription that was authorized earlier', async () => {
    const realtime = await start()
    const connection = await realtime.open()
    const access = { app: 'app-1', channel: 'private-a', user: 'u' }
    await realtime.server.notePermission({ ...access, socketId: connection.socketId })
    await realtime.server.disconnectSubscription(access)
    connection.send({
      event: 'pusher:subscribe',
      data: { channel: 'private-a', ...realtime.sdk.authorizeChannel(connection.socketId, 'private-a') },
    })
    expect((await connection.waitFor('pusher:subscription_error')).data.status).toBe(403)
  })

  test.each(['signed in', 'member', 'named by its channel data'])('finds a user who is %s', async (way) => {
    const realtime = await start()
    const connection = await realtime.open()
    if (way === 'signed in') {
      connection.send({ event: 'pusher:signin', data: realtime.sdk.authenticateUser(connection.socketId, { id: 'u' }) })
      await connection.waitFor('pusher:signin_success')
    }
    const channel = way === 'member' ? 'presence-a' : 'private-a'
    await connection.subscribe(channel, way === 'signed in' ? undefined : { user_id: 'u' })
    expect(await realtime.server.disconnectSubscription({ app: 'app-1', channel, user: 'u' })).toBe(1)
    await connection.waitFor('pusher:subscription_error')
    expect(realtime.server.listChannels('app-1')).toEqual([])
    expect(await realtime.server.terminateUser({ app: 'app-1', user: 'u' })).toBe(1)
    expect((await connection.closed).code).toBe(4009)
  })
})

test('a connection that over 1,000 channels were authorized for is closed so that its client connects again', async () => {
  const realtime = await start()
  const connection = await realtime.open()
  const { socketId } = connection
  const permit = (n: number) =>
    realtime.server.notePermission({ app: 'app-1', channel: `private-${n}`, user: 'u', owner: 'o', socketId })
  for (let n = 0; n < 1_000; n += 1) await permit(n)
  await permit(0)
  await settle(connection)
  await permit(1_000)
  expect((await connection.closed).code).toBe(4100)
})

test('a client that does not answer a close has lost its memberships all the same', async () => {
  const realtime = await start()
  const [deaf, other] = await Promise.all([realtime.open(), realtime.open()])
  await deaf.subscribe('presence-a', { user_id: 'u' })
  await other.subscribe('presence-a', { user_id: 'v' })
  deaf.webSocket.pause()
  await realtime.server.terminateUser({ app: 'app-1', user: 'u' })
  expect((await other.waitFor('pusher_internal:member_removed')).data).toEqual({ user_id: 'u' })
  expect(realtime.server.counts().connections).toBe(2)
})
