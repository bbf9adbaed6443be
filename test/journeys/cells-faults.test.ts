import { expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { type CellsUnderTest, startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import {
  type Arrivals,
  type CrossingTraffic,
  followArrivals,
  hurryWebhook,
  startCrossing,
} from '../harness/carriage/crossing-traffic.ts'
import { buildLogEnvironment, findLeader, registerEventType } from '../harness/carriage/event-log-service.ts'
import { hurryRetries, idsOf, type MovedTraffic, startTraffic } from '../harness/carriage/moved-traffic.ts'
import { endConnections, type ServiceFleet, startFleet } from '../harness/carriage/service-fleet.ts'
import type { TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../harness/nats/nats-servers.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runToEnd } from '../harness/process/process.ts'
import { buildServiceEnvironment, type ServiceProcess } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('three databases are not tested under faults')
const FAR = { limitMs: 180_000 }

/** Events that cross databases. CELLS_EVENTS asks for more. */
const EVENTS = Number(process.env.CELLS_EVENTS ?? 1_500)

/** The service in this process, which no fault ends. */
type Caller = Pick<ServiceProcess, 'call'>

/** Home and two cells on three servers, three servers of NATS, and two processes that work beside the service that is called. */
interface Ground {
  nats: NatsServers
  home: TestDatabase
  one: TestDatabase
  two: TestDatabase
  fixture: DeliveryFixture
  env: Record<string, string>
  front: Caller
  fleet: ServiceFleet
  /** The account that moves; those of the cells follow. */
  moved: string
  accounts: readonly [string, string]
  ofAll: Receiver
  ofAccounts: Receiver
  ofMoved: Receiver
  /** The webhooks of `ofAll` and `ofAccounts`, with their databases. */
  webhooks: readonly { database: TestDatabase; id: string }[]
}

const makeAccount = async ({ call }: Caller, name: string): Promise<string> =>
  (await call('POST', '/api/v3/identity/account', { name })).body.data.document_id

async function findType({ call }: Caller, name: string): Promise<string> {
  return (await call('GET', `/api/v3/webhook/event?filters=internal%7Ceq%7C${name}`)).body.data[0].document_id
}

/** Subscribes, again while the service has not heard yet where the account is: it answers 503 until then. */
async function subscribe({ call }: Caller, body: object, events: readonly string[]): Promise<string> {
  const made = await waitFor(
    'the service knows the place of the account',
    async () => {
      const answer = await call('POST', '/api/v3/webhook/webhook', body)
      return answer.body.code !== 'account_moving' && answer
    },
    FAR,
  )
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const id = made.body.data.document_id as string
  const set = await call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events })
  expect(set.status, JSON.stringify(set.body)).toBe(200)
  return id
}

/** Runs `signalbox account move` until it has moved, as an operator does whose connections break. */
async function moveAccount(
  { home, env }: Pick<Ground, 'home' | 'env'>,
  account: string,
  place: string,
): Promise<string> {
  const runs: string[] = []
  await waitFor(
    `the move to ${place}`,
    async () => {
      const { rows } = await home.pool.query('select from account_move where account = $1', [account])
      const args = [account, ...(rows.length === 0 ? [place] : [])]
      const { code, stdout, stderr } = await runToEnd(
        {
          args: [await bundleProgram(), 'account', 'move', ...args],
          env: { ...buildServiceEnvironment(home.connectionString), ...env },
        },
        FAR.limitMs,
      )
      runs.push(`${stdout}${stderr}`)
      return code === 0 || stderr.includes('The account is in')
    },
    { ...FAR, describe: () => runs.join('\n').slice(-4_000) },
  )
  return runs.join('\n')
}

async function openGround(cells: CellsUnderTest, fixture: DeliveryFixture, nats: NatsServers): Promise<Ground> {
  const [ofAll, ofAccounts, ofMoved] = [await fixture.receive(), await fixture.receive(), await fixture.receive()]
  const env = { ...buildLogEnvironment(nats.url), RATE_LIMIT_PER_MINUTE: '10000000' }
  const home = cells.homeDb
  const front = await fixture.startLocal({ env, roles: 'api' })
  const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
  for (const [index, name] of ['one', 'two'].entries())
    await cells.add({ name, url: cells.all[index] ?? '' }, { keyring })
  const [one, two] = cells.all.map(cells.open) as [TestDatabase, TestDatabase]
  const fleet = await startFleet(fixture, { size: 2, databases: [home, one, two], env })
  await registerEventType(front)
  const accounts = [await makeAccount(front, 'One'), await makeAccount(front, 'Two')] as const
  await Promise.all(accounts.map((account, index) => moveAccount({ home, env }, account, index === 0 ? 'one' : 'two')))
  const [contract, invoice] = [await findType(front, 'contract.create'), await findType(front, 'invoice.create')]
  const url = ({ origin }: Receiver) => `${origin}/`
  const all = await subscribe(front, { url: url(ofAll), is_global: true, name: 'All' }, [invoice])
  const webhooks = [{ database: home, id: all }]
  for (const [index, account] of accounts.entries()) {
    const id = await subscribe(front, { url: url(ofAccounts), account, name: 'Of its account' }, [contract])
    webhooks.push({ database: index === 0 ? one : two, id })
  }
  await subscribe(front, { url: url(ofMoved), account: fixture.account, name: 'Moved' }, [contract, invoice])
  return {
    ...{ nats, home, one, two, fixture, env, front, fleet, ofAll, ofAccounts, ofMoved },
    ...{ moved: fixture.account, accounts, webhooks },
  }
}

async function passTime({ webhooks, home, one, moved }: Ground): Promise<void> {
  for (const { database, id } of webhooks) await hurryWebhook(database, id)
  for (const database of [home, one]) await hurryRetries(database, moved)
}

/** What goes wrong, in this order, each after a further part of the events has arrived. */
function listFaults(ground: Ground): (() => Promise<void>)[] {
  const { nats, home, one, two, fleet, ofAccounts } = ground
  return [
    () => fleet.killHolder(home, 'relay'),
    () => fleet.killHolder(one, 'intake'),
    async () => {
      const leader = await findLeader(nats.url)
      const node = nats.nodes.find(({ name }) => name === leader)
      if (!node) throw new Error('the stream has no leader')
      await node.kill()
      await node.start()
    },
    async () => {
      for (const database of [home, one, two]) expect(await endConnections(database)).toBeGreaterThan(5)
    },
    async () => {
      const answered = Promise.withResolvers<void>()
      const before = ofAccounts.requests.length
      ofAccounts.behave({ kind: 'wait', until: answered.promise })
      await waitFor('attempts under way', () => ofAccounts.requests.length >= before + 20, FAR)
      await fleet.killAny()
      ofAccounts.behave({ kind: 'status', status: 200 })
      answered.resolve()
    },
    () => fleet.killHolder(two, 'relay'),
    () => fleet.killHolder(home, 'intake'),
  ]
}

/**
 * Makes each fault when its part of the events has arrived. Every fault then allows the next part to be recorded, so events are
 * on their way during it, however fast the earlier ones arrived. `allow` sets how many events may be recorded in all.
 */
async function letFaultsCome(ground: Ground, arrivals: Arrivals, allow: (events: number) => void): Promise<void> {
  const faults = listFaults(ground)
  const partOf = (count: number) => Math.floor((EVENTS * count) / (faults.length + 1))
  allow(partOf(1))
  for (const [index, fault] of faults.entries()) {
    const part = partOf(index + 1)
    const describe = () => `${arrivals.ids().size} of ${part} arrived`
    await waitFor(`the time of fault ${index + 1}`, () => arrivals.ids().size >= part, { ...FAR, describe })
    allow(partOf(index + 2))
    await fault()
  }
}

/** The events that one of the databases recorded, by event type. */
async function readRecorded({ home, one, two }: Ground, accounts: readonly string[]): Promise<Map<string, string>> {
  const recorded = new Map<string, string>()
  for (const { pool } of [home, one, two]) {
    const { rows } = await pool.query<{ id: string; event: string }>(
      `select document_id as id, event from event_occurrence
       where account = any($1) and event in ('contract.create', 'invoice.create')`,
      [accounts],
    )
    for (const { id, event } of rows) recorded.set(id, event)
  }
  return recorded
}

/** Every event that should have come to a receiver came, by one delivery, and none was posted more than five times. */
async function checkArrival(ground: Ground, receiver: Receiver, wanted: ReadonlySet<string>): Promise<number> {
  const arrivals = followArrivals([receiver])
  const missing = () => wanted.difference(arrivals.ids())
  await waitFor(
    'every event',
    async () => {
      await passTime(ground)
      return missing().size === 0
    },
    { ...FAR, describe: () => `${missing().size} of ${wanted.size} are missing` },
  )
  expect(arrivals.ids().difference(wanted)).toEqual(new Set())
  const posts = Map.groupBy(receiver.requests, ({ headers }) => headers['x-service-delivery'])
  expect(posts.size).toBe(wanted.size)
  const most = Math.max(...[...posts.values()].map((requests) => requests.length))
  expect(most).toBeLessThanOrEqual(5)
  expect(Math.max(...receiver.requests.map(({ headers }) => Number(headers['x-service-attempt'])))).toBeLessThanOrEqual(
    5,
  )
  return receiver.requests.length - wanted.size
}

async function checkCrossing(ground: Ground, { accepted }: CrossingTraffic): Promise<number[]> {
  const recorded = await readRecorded(ground, ground.accounts)
  expect(new Set([...accepted.home, ...accepted.cells]).difference(new Set(recorded.keys()))).toEqual(new Set())
  const of = (type: string) => new Set([...recorded].filter(([, event]) => event === type).map(([id]) => id))
  const published = new Set([...of('invoice.create'), ...(await readPublished(ground))])
  return [
    await checkArrival(ground, ground.ofAccounts, of('contract.create')),
    await checkArrival(ground, ground.ofAll, published),
  ]
}

/** The global webhook gets the publications of the moved account too. */
async function readPublished(ground: Ground): Promise<string[]> {
  const recorded = await readRecorded(ground, [ground.moved])
  return [...recorded].filter(([, event]) => event === 'invoice.create').map(([id]) => id)
}

async function checkMoved(ground: Ground, { accepted }: MovedTraffic): Promise<number> {
  const recorded = new Set((await readRecorded(ground, [ground.moved])).keys())
  expect(new Set(accepted.published).difference(recorded)).toEqual(new Set())
  expect(recorded.size).toBeGreaterThanOrEqual(accepted.published.length + accepted.contracts.length)
  return checkArrival(ground, ground.ofMoved, recorded)
}

test('home and two cells on three servers lose nothing while workers, a leader of NATS and connections are killed and an account moves there and back', async () => {
  if (!program) return
  await using nats = await startNatsServers({ program, size: 3 })
  await using cells = await startCellsUnderTest({ cells: 2 })
  await using fixture = await openDeliveryFixture(cells.homeDb)
  const ground = await openGround(cells, fixture, nats)
  const { home, one, front, accounts, moved, fleet } = ground
  const startedMs = performance.now()
  const arrivals = followArrivals([ground.ofAll, ground.ofAccounts])
  let allowed = 0
  const allow = (events: number) => {
    allowed = events
  }
  const crossing = startCrossing({
    ...{ call: front.call, home, accounts, arrivals, total: EVENTS, limit: () => allowed },
    passTime: () => passTime(ground),
  })
  const traffic = startTraffic({
    ...{ call: front.call, account: moved, cell: one, receiver: ground.ofMoved, isPatient: true },
  })
  const moves = (async () => {
    await traffic.waitForMore(5)
    await moveAccount(ground, moved, 'one')
    await traffic.waitForMore(10)
    await moveAccount(ground, moved, 'home')
    await traffic.waitForMore(5)
  })()
  await Promise.all([letFaultsCome(ground, arrivals, allow), crossing.finished, moves])
  await traffic.stop()

  const again = [...(await checkCrossing(ground, crossing)), await checkMoved(ground, traffic)]
  expect(fleet.killed()).toBe(5)
  expect(idsOf(ground.ofMoved).length).toBeGreaterThan(20)
  const { rows } = await home.pool.query('select cell, version from account_cell where account = $1', [moved])
  expect(rows).toMatchObject([{ cell: null, version: 2 }])
  if (process.env.CELLS_EVENTS)
    process.stdout.write(
      `${EVENTS} events in ${Math.round((performance.now() - startedMs) / 1_000)} s, posted again: ${again.join(', ')}; ${crossing.failures()} requests failed.\n`,
    )
}, 900_000)
