import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildMemoryBus } from '../../../../test/harness/carriage/memory-bus.ts'
import { createTestDatabase, type TestDatabase } from '../../../../test/harness/database/database.ts'
import { findNatsServer } from '../../../../test/harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../../../../test/harness/nats/nats-servers.ts'
import { startTestRealtime, type TestRealtime } from '../../../../test/harness/realtime/realtime-server.ts'
import { buildManualClock, type ManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../../test/harness/run/wait.ts'
import type { OpenBus } from '../../../carriage/bus/bus.ts'
import { buildNatsBus } from '../../../carriage/nats/nats-bus.ts'
import { parseNatsUrl } from '../../../carriage/nats/nats-url.ts'
import { openDatabase } from '../../../postgres/statement/database.ts'

const program = await findNatsServer('the processes are joined by a bus in memory')

let database: TestDatabase
let servers: NatsServers | undefined
/** The bus of the processes that are started; undefined: PostgreSQL carries everything. */
let openBus: OpenBus | undefined
const started: TestRealtime[] = []
beforeAll(async () => {
  database = await createTestDatabase()
  servers = program ? await startNatsServers({ program }) : undefined
})
afterEach(async () => {
  for (const realtime of started.splice(0)) await realtime[Symbol.asyncDispose]()
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
  await servers?.[Symbol.asyncDispose]()
})

function buildBus(): OpenBus {
  if (!servers) return buildMemoryBus().open
  const settings = { ...parseNatsUrl(servers.url), tls: {} }
  const given = { settings, subject: 'test.realtime', keys: [Buffer.alloc(32, 7)] as [Buffer], onFailed: () => {} }
  return (id, callbacks) => buildNatsBus({ ...given, id, ...callbacks })
}

async function start(clock?: ManualClock): Promise<TestRealtime> {
  const realtime = await startTestRealtime(database, { openBus, ...(clock && { clock }) })
  started.push(realtime)
  if (openBus) await waitFor('the bus', () => realtime.server.fleet().isOnBus)
  return realtime
}

const channelOf = (realtime: TestRealtime, name: string) =>
  realtime.server.listChannels('app-1').find((channel) => channel.name === name)

/** Two processes that know each other. */
async function startTwo() {
  const [first, second] = [await start(), await start()]
  const probe = await second.open()
  await probe.subscribe('probe')
  await waitFor('the two to know each other', () => channelOf(first, 'probe')?.connections === 1)
  return { first, second, probe }
}

const statement = (text: string) => database.pool.query(text)

/** Lets a process look for the others again and again. */
async function lookUntil(clock: ManualClock, condition: () => boolean): Promise<void> {
  await waitFor('the effect of looks', async () => {
    if (condition()) return true
    clock.advance(1_000)
    await statement('select 1')
    return false
  })
}

describe.each(['PostgreSQL', 'a bus'])('processes joined by %s:', (carrier) => {
  beforeAll(() => {
    openBus = carrier === 'a bus' ? buildBus() : undefined
  })
  afterAll(() => {
    openBus = undefined
  })

  describe('several processes', () => {
    test('deliver events of each other, small and large, in the order of their publisher', async () => {
      const { first, second } = await startTwo()
      const reader = await second.open()
      await reader.subscribe('private-a')
      for (let n = 0; n < 30; n += 1)
        await first.sdk.trigger('private-a', 'e', { n, text: (n % 3 === 0 ? '€' : '').repeat(3_000) })
      await waitFor('all events', () => reader.frames.filter(({ event }) => event === 'e').length === 30)
      const numbers = reader.frames.filter(({ event }) => event === 'e').map(({ data }) => data.n)
      expect(numbers).toEqual(Array.from({ length: 30 }, (_, n) => n))
      const { bus, database: stored } = first.server.fleet()
      if (carrier === 'a bus') expect(bus).toBeGreaterThanOrEqual(30)
      else expect([bus, stored >= 30]).toEqual([0, true])
    })

    test('deliver client events of each other, and not to the excluded socket', async () => {
      const { first, second } = await startTwo()
      const [from, to] = [await first.open(), await second.open()]
      await from.subscribe('presence-talk', { user_id: 'ann' })
      await to.subscribe('presence-talk', { user_id: 'bob' })
      from.send({ event: 'client-hello', channel: 'presence-talk', data: { n: 1 } })
      expect(await to.waitFor('client-hello')).toMatchObject({ data: { n: 1 }, user_id: 'ann' })
      await first.sdk.trigger('presence-talk', 'excluded', 1, { socket_id: to.socketId })
      await first.sdk.trigger('presence-talk', 'last', 1)
      await to.waitFor('last')
      expect(to.frames.some(({ event }) => event === 'excluded')).toBe(false)
    })

    test('count subscribers and members together, and report each member once', async () => {
      const { first, second } = await startTwo()
      const ann = await first.open()
      await ann.subscribe('presence-room', { user_id: 'ann' })
      await waitFor('ann in the other process', () => channelOf(second, 'presence-room')?.members === 1)
      const bob = await second.open()
      const greeting = await bob.subscribe('presence-room', { user_id: 'bob', user_info: { n: 1 } })
      expect(greeting.data.presence).toMatchObject({ ids: ['ann', 'bob'], count: 2 })
      expect((await ann.waitFor('pusher_internal:member_added')).data).toEqual({ user_id: 'bob', user_info: { n: 1 } })
      const again = await first.open()
      await again.subscribe('presence-room', { user_id: 'bob' })
      await waitFor('three connections', () => channelOf(second, 'presence-room')?.connections === 3)
      expect(channelOf(first, 'presence-room')).toEqual({ name: 'presence-room', connections: 3, members: 2 })
      bob.webSocket.close()
      await waitFor('two connections', () => channelOf(first, 'presence-room')?.connections === 2)
      again.webSocket.close()
      await ann.waitFor('pusher_internal:member_removed')
      expect(ann.frames.filter(({ event }) => event.includes('member_'))).toHaveLength(2)
    })

    test('tell a new process of their channels, members and cached events', async () => {
      const first = await start()
      const ann = await first.open()
      await ann.subscribe('presence-room', { user_id: '__proto__' })
      await first.sdk.trigger('cache-rates', 'rate', { eur: 1 })
      const second = await start()
      await waitFor('the state', () => channelOf(second, 'presence-room')?.members === 1)
      const reader = await second.open()
      await reader.subscribe('cache-rates')
      expect((await reader.waitFor('rate')).data).toEqual({ eur: 1 })
    })

    test('end subscriptions and connections of a user everywhere', async () => {
      const { first, second } = await startTwo()
      const connection = await second.open()
      const access = { app: 'app-1', channel: 'private-a', user: 'u' }
      await first.server.notePermission({ ...access, socketId: connection.socketId })
      await connection.subscribe('private-a')
      // The permission was sent before the withdrawal, and arrives before it.
      await first.server.disconnectSubscription(access)
      await connection.waitFor('pusher:subscription_error', 'private-a')
      await first.server.terminateUser({ app: 'app-1', user: 'u' })
      expect((await connection.closed).code).toBe(4009)
    })

    test('forget a process that stops at once, with its members', async () => {
      const { first, second } = await startTwo()
      const [ann, bob] = [await first.open(), await second.open()]
      await bob.subscribe('presence-room', { user_id: 'bob' })
      await waitFor('bob in the other process', () => channelOf(first, 'presence-room')?.members === 1)
      await ann.subscribe('presence-room', { user_id: 'ann' })
      await second.server.stop()
      await ann.waitFor('pusher_internal:member_removed')
      await waitFor('its channels to be empty', () => channelOf(first, 'probe') === undefined)
    })
  })

  describe('a process that falls silent', () => {
    test('is forgotten after some looks, and counted again when it returns', async () => {
      const clock = buildManualClock(Date.now())
      const first = await start(clock)
      const silent = await start(buildManualClock(Date.now()))
      const [ann, bob] = [await first.open(), await silent.open()]
      await bob.subscribe('presence-room', { user_id: 'bob' })
      await waitFor('bob in the other process', () => channelOf(first, 'presence-room')?.members === 1)
      await ann.subscribe('presence-room', { user_id: 'ann' })
      await lookUntil(clock, () => channelOf(first, 'presence-room')?.members === 1)
      await ann.waitFor('pusher_internal:member_removed')
      silent.clock.advance(1_000)
      await lookUntil(clock, () => channelOf(first, 'presence-room')?.members === 2)
      await ann.waitFor('pusher_internal:member_added')
    })
  })

  describe('a lost connection to the database', () => {
    test('loses no event: what was missed is read from the table', async () => {
      const { first, second, probe } = await startTwo()
      const listeners = await statement(
        `select pid from pg_stat_activity where datname = current_database() and application_name = 'signalbox realtime'`,
      )
      expect(listeners.rows).toHaveLength(2)
      for (const { pid } of listeners.rows) await statement(`select pg_terminate_backend(${pid}, 5000)`)
      await first.sdk.trigger('probe', 'missed', { n: 1 })
      await waitFor('the event', () => {
        // The pause before a new connection.
        second.clock.advance(250)
        first.clock.advance(250)
        return probe.frames.some(({ event }) => event === 'missed')
      })
      await first.sdk.trigger('probe', 'later', { n: 2 })
      await probe.waitFor('later')
      expect(probe.frames.filter(({ event }) => event === 'missed')).toHaveLength(1)
    })

    test('loses no event when it lasts so long that the others take the process for ended', async () => {
      const { first, probe, second } = await startTwo()
      await statement(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
         where datname = current_database() and application_name = 'signalbox realtime'`,
      )
      // The second one does not connect again, because its time stands still.
      await lookUntil(first.clock, () => channelOf(first, 'probe') === undefined)
      await first.sdk.trigger('probe', 'missed', { n: 1 })
      second.clock.advance(250)
      expect((await probe.waitFor('missed')).data).toEqual({ n: 1 })
    })
  })
})

test('a bus whose server is killed and comes back loses no event and repeats none', async () => {
  const node = servers?.nodes[0]
  if (!node) return
  openBus = buildBus()
  const { first, second } = await startTwo()
  openBus = undefined
  const reader = await second.open()
  await reader.subscribe('private-a')
  const published: Promise<unknown>[] = []
  const publish = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const sent = first.sdk.trigger('private-a', 'e', published.length)
      published.push(sent)
      if (n % 5 === 0) await sent
    }
  }
  await publish(20)
  await Promise.all([node.kill(), publish(60)])
  await waitFor('the loss', () => !first.server.fleet().isOnBus && !second.server.fleet().isOnBus)
  await Promise.all([node.start(), publish(60)])
  await waitFor('the bus', () => first.server.fleet().isOnBus && second.server.fleet().isOnBus)
  await publish(20)
  await Promise.all(published)
  const numbers = () => reader.frames.filter(({ event }) => event === 'e').map(({ data }) => data as number)
  await lookUntil(second.clock, () => {
    first.clock.advance(1_000)
    return numbers().length >= published.length
  })
  expect(numbers().toSorted((a, b) => a - b)).toEqual(published.map((_, n) => n))
  expect(first.server.fleet().losses + second.server.fleet().losses).toBe(0)
})

describe('a database that does not answer', () => {
  test('lets a publish fail with 503 while there are other processes, and delivers nothing twice after it', async () => {
    const own = openDatabase({
      connectionString: database.connectionString,
      size: 2,
      applicationName: 'own',
      onError: () => {},
    })
    const lines: { msg: string; kind?: string }[] = []
    const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
    const first = await startTestRealtime(database, { db: own.db, logger })
    started.push(first)
    const second = await start()
    const [near, far] = [await first.open(), await second.open()]
    await near.subscribe('private-a')
    await far.subscribe('private-a')
    await waitFor('the two to know each other', () => channelOf(first, 'private-a')?.connections === 2)
    await statement('alter table realtime_relay rename to elsewhere')
    await expect(first.sdk.trigger('private-a', 'e', 1)).rejects.toMatchObject({ status: 503 })
    await expect(first.sdk.terminateUserConnections('nobody')).rejects.toMatchObject({ status: 503 })
    const refused = 'realtime publish refused: see docs/operations.md, realtime processes'
    expect(lines.filter(({ msg }) => msg === refused)).toMatchObject([{ kind: 'publish' }, { kind: 'terminate' }])
    await statement('alter table elsewhere rename to realtime_relay')
    await first.sdk.trigger('private-a', 'e', 1)
    await Promise.all([near.waitFor('e'), far.waitFor('e')])
    for (const { frames } of [near, far]) expect(frames.filter(({ event }) => event === 'e')).toHaveLength(1)
    await first.server.stop()
    await own.close()
  })
})

describe('the tables', () => {
  test('keep messages for a minute, and only while there are other processes', async () => {
    const { first, second } = await startTwo()
    await first.sdk.trigger('probe', 'kept', 1)
    const count = async () => (await statement('select count(*)::int as n from realtime_relay')).rows[0].n
    expect(await count()).toBeGreaterThan(0)
    // Only the clock of the first: the second one falls silent meanwhile.
    await waitFor('empty tables', async () => {
      first.clock.advance(5_000)
      second.clock.advance(5_000)
      return (await count()) === 0
    })
    await second.server.stop()
    await waitFor('a publish that is not kept', async () => {
      const before = await count()
      await first.sdk.trigger('probe', 'unkept', 1)
      return (await count()) === before
    })
    const { rows } = await statement('select id from realtime_process')
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.length).toBeGreaterThan(0)
  })
})
