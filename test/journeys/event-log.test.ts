import { expect, test } from 'vitest'
import {
  buildLogEnvironment,
  findLeader,
  firstOf,
  manageStreams,
  type Publisher,
  readWholeLog,
  registerEventType,
  STREAM,
  startPublisher,
} from '../harness/carriage/event-log-service.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { type NatsNode, startNatsServers } from '../harness/nats/nats-servers.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('the event log is tested with a log in memory alone')
const FAR = { limitMs: 120_000 }

test('what the API accepted while brokers die, hang and come back is in the log, in the order of each account', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program, size: 3 })
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  await using fixture = await openDeliveryFixture(database)
  const env = { ...buildLogEnvironment(servers.url), RATE_LIMIT_PER_MINUTE: '10000000' }
  // Two processes that may append: one has the lease.
  const services = [await fixture.startLocal({ env }), await fixture.startLocal({ env })] as const
  await registerEventType(services[0])
  const publishers = await Promise.all(
    ['A', 'B', 'C'].map((name, index) => startPublisher(services[index % 2 === 0 ? 0 : 1], name)),
  )
  const count = () => publishers.reduce((sum, { accepted }) => sum + accepted.length, 0)
  const grow = (by: number, from = count()) => waitFor('more publications', () => count() >= from + by, FAR)
  const readWaiting = async () => {
    const { rows } = await database.pool.query<{ n: number }>('select count(*)::int as n from event_outbox')
    return rows[0]?.n ?? 0
  }
  /** An event that is accepted from now on reaches the log. */
  const goesOn = async () => {
    const [{ accepted }] = publishers as [Publisher]
    const next = accepted.length + 1
    await waitFor('a publication', () => accepted.length > next, FAR)
    const waits = 'select from event_outbox where event_id = $1'
    const isWritten = async () => (await database.pool.query(waits, [accepted[next]])).rowCount === 0
    await waitFor('the log is written', isWritten, FAR)
  }
  const leader = async (): Promise<NatsNode> => {
    const name = await findLeader(servers.url)
    const node = servers.nodes.find((item) => item.name === name)
    if (!node) throw new Error(`there is no node ${name}`)
    return node
  }

  await goesOn()
  // The leader is killed: another one is elected.
  const killed = await leader()
  await killed.kill()
  await goesOn()
  await killed.start()
  // All are killed: nothing can be written, and the API accepts all the same.
  await Promise.all(servers.nodes.map((node) => node.kill()))
  const before = await readWaiting()
  await grow(60)
  expect(await readWaiting()).toBeGreaterThanOrEqual(before + 45)
  await Promise.all(servers.nodes.map((node) => node.start()))
  await servers.waitUntilReady()
  await goesOn()
  // The leader hangs: to the others it is away, and its connections stay open.
  const frozen = await leader()
  frozen.freeze()
  await goesOn()
  frozen.thaw()
  await goesOn()
  await Promise.all(publishers.map((publisher) => publisher.stop()))
  await waitFor('an empty outbox', async () => (await readWaiting()) === 0, FAR)

  const entries = await readWholeLog(servers.url)
  for (const { account, accepted } of publishers) expect(firstOf(entries, account)).toEqual(accepted)
  expect(
    await manageStreams(servers.url, async ({ streams }) => (await streams.info(STREAM)).config.num_replicas),
  ).toBe(3)
  // No message was lost, so no event was published again.
  const { rows } = await database.pool.query('select loss, republish_after from event_log')
  expect(rows).toEqual([{ loss: null, republish_after: null }])
}, 300_000)
