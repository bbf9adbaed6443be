import { expect, test } from 'vitest'
import type { OpenBus } from '../../src/carriage/bus/bus.ts'
import { buildNatsBus } from '../../src/carriage/nats/nats-bus.ts'
import { parseNatsUrl } from '../../src/carriage/nats/nats-url.ts'
import {
  buildLogEnvironment,
  findLeader,
  firstOf,
  type Publisher,
  readWholeLog,
  registerEventType,
  startPublisher,
} from '../harness/carriage/event-log-service.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { startNatsServers } from '../harness/nats/nats-servers.ts'
import { startTestRealtime } from '../harness/realtime/realtime-server.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('a split cluster is not tested')
const FAR = { limitMs: 120_000 }

test('a cluster whose leader is split from the others, both ways, goes on without it, and nothing is lost', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program, size: 3, isSplittable: true })
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  await using fixture = await openDeliveryFixture(database)
  const env = { ...buildLogEnvironment(servers.url), RATE_LIMIT_PER_MINUTE: '10000000' }
  const service = await fixture.startLocal({ env })
  await registerEventType(service)
  const publishers = await Promise.all(['A', 'B'].map((name) => startPublisher(service, name)))
  const isWritten = async (event: string) => {
    const { rowCount } = await database.pool.query('select from event_outbox where event_id = $1', [event])
    return rowCount === 0
  }
  /** An event that is accepted from now on reaches the log. */
  const goesOn = async (what: string) => {
    const [{ accepted }] = publishers as [Publisher]
    const next = accepted.length + 1
    await waitFor('a publication', () => accepted.length > next, FAR)
    await waitFor(what, () => isWritten(accepted[next] ?? ''), FAR)
  }
  await goesOn('the log before the split')
  for (let round = 1; round <= 2; round += 1) {
    const leader = await findLeader(servers.url)
    servers.split(leader)
    await goesOn(`the log of the majority, ${round}`)
    const others = servers.nodes.filter(({ name }) => name !== leader).map(({ url }) => url)
    expect(await findLeader(others.join(','))).not.toBe(leader)
    servers.heal()
    await servers.waitUntilReady()
    await goesOn(`the log after the split, ${round}`)
  }
  await Promise.all(publishers.map((publisher) => publisher.stop()))
  await waitFor(
    'an empty outbox',
    async () => (await database.pool.query('select from event_outbox limit 1')).rowCount === 0,
    FAR,
  )
  const entries = await readWholeLog(servers.url)
  for (const { account, accepted } of publishers) expect(firstOf(entries, account)).toEqual(accepted)
  const { rows } = await database.pool.query('select loss, republish_after from event_log')
  expect(rows).toEqual([{ loss: null, republish_after: null }])
}, 400_000)

test('realtime processes on the two sides of a split cluster receive each other, and revocations at once', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program, size: 3, isSplittable: true })
  await using database = await createTestDatabase()
  const openBusAt = (index: number): OpenBus => {
    const settings = { ...parseNatsUrl(servers.nodes[index]?.url ?? ''), tls: {} }
    const given = { settings, subject: 'test.realtime', keys: [Buffer.alloc(32, 7)] as [Buffer], onFailed: () => {} }
    return (id, callbacks) => buildNatsBus({ ...given, id, ...callbacks })
  }
  await using one = await startTestRealtime(database, { openBus: openBusAt(0) })
  await using two = await startTestRealtime(database, { openBus: openBusAt(2) })
  const reader = await two.open()
  await reader.subscribe('private-a')
  const numbers = () => reader.frames.filter(({ event }) => event === 'e').map(({ data }) => data)
  const look = async (what: string, condition: () => boolean) =>
    waitFor(what, async () => {
      for (const { clock } of [one, two]) clock.advance(1_000)
      return condition()
    })
  await look('both on the bus', () => [one, two].every(({ server }) => server.fleet().isOnBus))
  await look('the reader', () => one.server.listChannels('app-1').some(({ name }) => name === 'private-a'))
  servers.split('n3')
  const before = one.server.fleet().bus
  await one.sdk.trigger('private-a', 'e', 1)
  // Each side still receives itself, so the bus is open, and has taken the event.
  expect(one.server.fleet()).toMatchObject({ isOnBus: true, bus: before + 1 })
  await look('what the split lost', () => numbers().length === 1)
  await one.sdk.trigger('private-a', 'e', 2)
  await look('what came after it', () => numbers().length === 2)
  const access = { app: 'app-1', channel: 'private-a', user: 'u' }
  await one.server.notePermission({ ...access, socketId: reader.socketId })
  await one.server.disconnectSubscription(access)
  await reader.waitFor('pusher:subscription_error', 'private-a')
  servers.heal()
  expect(numbers()).toEqual([1, 2])
})
