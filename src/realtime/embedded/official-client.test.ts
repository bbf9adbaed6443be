import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { nextEvent, startTestRealtime } from '../../../test/harness/realtime/realtime-server.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'

const database = await openForFile(createTestDatabase())
const realtime = await openForFile(startTestRealtime(database))

describe('the official client', () => {
  test.each(['news', 'private-news', 'presence-news', 'private-encrypted-news'])(
    'receives on %s what the official server library publishes',
    async (name) => {
      const client = realtime.connect({ user: { id: 'ann' } })
      const channel = client.subscribe(name)
      const received = nextEvent(channel, 'created')
      await nextEvent(channel, 'pusher:subscription_succeeded')
      const answer = await realtime.sdk.trigger(name, 'created', { id: 1, text: 'ü€😀' })
      expect(answer.status).toBe(200)
      expect(await received).toEqual({ id: 1, text: 'ü€😀' })
    },
  )

  test('does not receive what it excludes by its socket id, nor after it unsubscribed', async () => {
    const [first, second] = [realtime.connect(), realtime.connect()]
    const seen: unknown[] = []
    const channels = [first.subscribe('excluding'), second.subscribe('excluding')]
    await Promise.all(channels.map((channel) => nextEvent(channel, 'pusher:subscription_succeeded')))
    channels[0]!.bind('e', (data: unknown) => seen.push(data))
    const last = nextEvent(channels[1]!, 'last')
    await realtime.sdk.trigger('excluding', 'e', 1, { socket_id: first.connection.socket_id })
    first.unsubscribe('excluding')
    await waitFor(
      'one subscriber',
      () => realtime.server.listChannels('app-1').find((c) => c.name === 'excluding')?.connections === 1,
    )
    await realtime.sdk.trigger('excluding', 'e', 2)
    await realtime.sdk.trigger('excluding', 'last', 3)
    await last
    expect(seen).toEqual([])
  })

  test('receives a batch in its order', async () => {
    const channel = realtime.connect().subscribe('batches')
    const seen: unknown[] = []
    channel.bind('e', (data: unknown) => seen.push(data))
    await nextEvent(channel, 'pusher:subscription_succeeded')
    await realtime.sdk.triggerBatch(
      Array.from({ length: 10 }, (_, n) => ({ channel: 'batches', name: 'e', data: { n } })),
    )
    await waitFor('ten events', () => seen.length === 10)
    expect(seen).toEqual(Array.from({ length: 10 }, (_, n) => ({ n })))
  })

  test('sends client events to the other subscribers of private and presence channels, with its user on the latter', async () => {
    const [ann, bob] = [realtime.connect({ user: { id: 'ann' } }), realtime.connect({ user: { id: 'bob' } })]
    for (const name of ['private-talk', 'presence-talk']) {
      const [from, to] = [ann.subscribe(name), bob.subscribe(name)]
      const echoes: unknown[] = []
      from.bind('client-hello', (data: unknown) => echoes.push(data))
      await Promise.all([from, to].map((item) => nextEvent(item, 'pusher:subscription_succeeded')))
      const received = new Promise((resolve) => {
        to.bind('client-hello', (data: unknown, metadata: unknown) => resolve([data, metadata]))
      })
      from.trigger('client-hello', { n: 1 })
      expect(await received).toEqual([{ n: 1 }, name === 'presence-talk' ? { user_id: 'ann' } : {}])
      expect(echoes).toEqual([])
    }
  })

  test('sees the members of a presence channel come and leave, each user once', async () => {
    const ann = realtime.connect({ user: { id: 'ann' } })
    const room = ann.subscribe('presence-room') as ReturnType<typeof ann.subscribe> & {
      members: { count: number; me: unknown }
    }
    await nextEvent(room, 'pusher:subscription_succeeded')
    expect(room.members).toMatchObject({ count: 1, me: { id: 'ann', info: { name: 'ann' } } })
    const added = nextEvent(room, 'pusher:member_added')
    const removed = nextEvent(room, 'pusher:member_removed')
    const [bob, again] = [realtime.connect({ user: { id: 'bob' } }), realtime.connect({ user: { id: 'bob' } })]
    for (const client of [bob, again])
      await nextEvent(client.subscribe('presence-room'), 'pusher:subscription_succeeded')
    expect(await added).toEqual({ id: 'bob', info: { name: 'bob' } })
    expect(room.members.count).toBe(2)
    bob.disconnect()
    await waitFor(
      'one connection less',
      () => realtime.server.listChannels('app-1').find((c) => c.name === 'presence-room')?.connections === 2,
    )
    expect(room.members.count).toBe(2)
    again.unsubscribe('presence-room')
    expect(await removed).toEqual({ id: 'bob', info: { name: 'bob' } })
    const users = await (await realtime.sdk.get({ path: '/channels/presence-room/users' })).json()
    expect(users).toEqual({ users: [{ id: 'ann' }] })
  })

  test('signs in, receives events of its user, and is closed for good when they are terminated', async () => {
    const client = realtime.connect({ user: { id: 'carol', email: 'c@example.com' } })
    client.signin()
    const greeting = nextEvent(client.user, 'greeting')
    await client.user.signinDonePromise
    await waitFor('the channel of the user', () => client.user.serverToUserChannel?.subscribed === true)
    await realtime.sdk.sendToUser('carol', 'greeting', { hello: 'carol' })
    expect(await greeting).toEqual({ hello: 'carol' })
    const state = nextEvent(client.connection, 'disconnected')
    const failure = nextEvent(client.connection, 'error')
    expect((await realtime.sdk.terminateUserConnections('carol')).status).toBe(200)
    await state
    expect(await failure).toMatchObject({ data: { code: 4009 } })
  })

  test('receives the last event of a cache channel first, and a cache miss where there is none', async () => {
    await realtime.sdk.trigger('cache-rates', 'rate', { eur: 1 })
    await realtime.sdk.trigger('cache-rates', 'rate', { eur: 2 })
    const client = realtime.connect()
    const channel = client.subscribe('cache-rates')
    expect(await nextEvent(channel, 'rate')).toEqual({ eur: 2 })
    await nextEvent(client.subscribe('cache-empty'), 'pusher:cache_miss')
    realtime.clock.advance(1_800_000)
    await nextEvent(realtime.connect().subscribe('cache-rates'), 'pusher:cache_miss')
  })

  test('with an unknown key is refused with 4001 and does not retry', async () => {
    const client = realtime.connect({ key: 'other' })
    const disconnected = nextEvent(client.connection, 'disconnected')
    expect(await nextEvent(client.connection, 'error')).toMatchObject({ error: { data: { code: 4001 } } })
    await disconnected
    expect(client.connection.state).toBe('disconnected')
  })
})

describe('a stop', () => {
  test('closes every connection with 4100 and refuses new ones', async () => {
    const own = await startTestRealtime(database)
    const connections = await Promise.all(Array.from({ length: 5 }, () => own.open()))
    const stopped = own.server.stop()
    for (const { closed } of connections) expect(await closed).toMatchObject({ code: 4100 })
    await stopped
    expect(await own.openRefused('/app/key-1?protocol=7')).toMatchObject({ status: 503 })
    await own[Symbol.asyncDispose]()
  })
})
