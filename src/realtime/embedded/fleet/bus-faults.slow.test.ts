import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { buildMemoryBus, type MemoryBus } from '../../../../test/harness/carriage/memory-bus.ts'
import { createTestDatabase, type TestDatabase } from '../../../../test/harness/database/database.ts'
import {
  type RawConnection,
  startTestRealtime,
  type TestRealtime,
} from '../../../../test/harness/realtime/realtime-server.ts'
import { waitFor } from '../../../../test/harness/run/wait.ts'

/** A bus that loses messages, is split, or is away: nothing is lost, and revocations do not wait for it. */

let database: TestDatabase
let memory: MemoryBus
const started: TestRealtime[] = []
beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(() => {
  memory = buildMemoryBus()
})
afterEach(async () => {
  for (const realtime of started.splice(0)) await realtime[Symbol.asyncDispose]()
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
})

async function start({ hasBus = true } = {}): Promise<TestRealtime> {
  const realtime = await startTestRealtime(database, hasBus ? { openBus: memory.open } : {})
  started.push(realtime)
  return realtime
}

const connectionsOf = (realtime: TestRealtime, name: string) =>
  realtime.server.listChannels('app-1').find((channel) => channel.name === name)?.connections

/** Two processes that know each other, and a reader of `private-a` on the second. */
async function startTwo(given?: { hasBus?: boolean }) {
  const [one, two] = [await start(), await start(given)]
  const reader = await two.open()
  await reader.subscribe('private-a')
  await waitFor('the two to know each other', () => connectionsOf(one, 'private-a') === 1)
  return { one, two, reader }
}

const numbersOf = ({ frames }: RawConnection) => frames.filter(({ event }) => event === 'e').map(({ data }) => data)

async function publish({ sdk }: TestRealtime, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n += 1) await sdk.trigger('private-a', 'e', n)
}

const range = (to: number) => Array.from({ length: to }, (_, index) => index + 1)

/** Lets both look at the other, a second later each time. */
async function lookUntil(processes: readonly TestRealtime[], what: string, condition: () => boolean): Promise<void> {
  await waitFor(what, async () => {
    if (condition()) return true
    for (const { clock } of processes) clock.advance(1_000)
    await database.pool.query('select 1')
    return false
  })
}

test('what the bus lost is repeated before what came after it, each once', async () => {
  const { one, two, reader } = await startTwo()
  await publish(one, 1, 2)
  memory.connects = () => false
  await publish(one, 3, 5)
  memory.connects = () => true
  await publish(one, 6, 9)
  await waitFor('all events', () => numbersOf(reader).length === 9)
  expect(numbersOf(reader)).toEqual(range(9))
  expect(two.server.fleet()).toMatchObject({ repeats: 1, losses: 0 })
  expect(one.server.fleet().bus).toBeGreaterThanOrEqual(9)
})

test('what was lost last is found by the number of the heartbeat, without a message after it', async () => {
  const { one, two, reader } = await startTwo()
  memory.connects = () => false
  await publish(one, 1, 3)
  await lookUntil([one, two], 'the repeated events', () => numbersOf(reader).length === 3)
  expect(numbersOf(reader)).toEqual(range(3))
})

test('two halves of a split bus receive each other, by the database after the second repetition', async () => {
  const { one, two, reader } = await startTwo()
  const other = await one.open()
  await other.subscribe('private-a')
  memory.connects = () => false
  for (let n = 1; n <= 3; n += 1) {
    await publish(one, n, n)
    await lookUntil([one, two], `event ${n}`, () => numbersOf(reader).length === n)
  }
  const { bus, database: stored } = one.server.fleet()
  await publish(one, 4, 4)
  await waitFor('event 4', () => numbersOf(reader).length === 4)
  expect(one.server.fleet().bus).toBe(bus)
  expect(one.server.fleet().database).toBeGreaterThan(stored)
  await two.sdk.trigger('private-a', 'back', 1)
  await lookUntil([one, two], 'the event of the other half', () => other.frames.some(({ event }) => event === 'back'))
  memory.connects = () => true
  for (const { clock } of [one, two]) clock.advance(11_000)
  await publish(one, 5, 5)
  await waitFor('event 5', () => numbersOf(reader).length === 5)
  expect(one.server.fleet().bus).toBe(bus + 1)
  expect(numbersOf(reader)).toEqual(range(5))
})

test('a revocation neither waits for the bus nor is lost with it', async () => {
  const { one, two, reader } = await startTwo()
  const access = { app: 'app-1', channel: 'private-a', user: 'u' }
  memory.connects = () => false
  await one.server.notePermission({ ...access, socketId: reader.socketId })
  // Lost on the bus: what follows is not held up by the gap.
  await publish(one, 1, 1)
  await one.server.disconnectSubscription(access)
  await reader.waitFor('pusher:subscription_error', 'private-a')
  const second = await two.open()
  await one.server.notePermission({ ...access, channel: 'private-b', socketId: second.socketId })
  memory.isUp = () => false
  memory.refresh()
  await one.server.terminateUser({ app: 'app-1', user: 'u' })
  expect((await second.closed).code).toBe(4009)
})

test('while the bus is away events and members go through the database, and by the bus again after it', async () => {
  const { one, two, reader } = await startTwo()
  memory.isUp = () => false
  memory.refresh()
  expect(one.server.fleet().isOnBus).toBe(false)
  const { bus } = one.server.fleet()
  await publish(one, 1, 3)
  const bob = await two.open()
  await bob.subscribe('private-a')
  await waitFor('both connections', () => connectionsOf(one, 'private-a') === 2)
  expect(one.server.fleet().bus).toBe(bus)
  memory.isUp = () => true
  memory.refresh()
  await waitFor('an event by the bus', async () => {
    const n = numbersOf(reader).length + 1
    await publish(one, n, n)
    await waitFor('the event', () => numbersOf(reader).length === n)
    return one.server.fleet().bus > bus
  })
  expect(numbersOf(reader)).toEqual(range(numbersOf(reader).length))
})

test('beside a process without a bus everything goes through the database, in both directions', async () => {
  const { one, two, reader } = await startTwo({ hasBus: false })
  const other = await one.open()
  await other.subscribe('private-a')
  await publish(one, 1, 3)
  await waitFor('the events', () => numbersOf(reader).length === 3)
  await two.sdk.trigger('private-a', 'back', 1)
  await other.waitFor('back')
  expect(one.server.fleet()).toMatchObject({ bus: 0, isOnBus: true })
  expect(two.server.fleet()).toMatchObject({ bus: 0, isOnBus: undefined })
})

test('a process that has just its own connection to the bus lost is sent everything through the database', async () => {
  const { one, two, reader } = await startTwo()
  const third = await start()
  const far = await third.open()
  await far.subscribe('private-a')
  await waitFor('three processes', () => connectionsOf(one, 'private-a') === 2)
  const { rows } = await database.pool.query('select id from realtime_process order by id desc limit 1')
  memory.isUp = (id) => id !== rows[0].id
  memory.refresh()
  expect(third.server.fleet().isOnBus).toBe(false)
  await publish(one, 1, 2)
  for (const read of [reader, far]) await lookUntil([one, two, third], 'the events', () => numbersOf(read).length === 2)
})

test('an event over the limit of the bus arrives in its place', async () => {
  memory.limitBytes = 2_000
  const { one, reader } = await startTwo()
  for (let n = 1; n <= 9; n += 1)
    await one.sdk.trigger('private-a', 'e', { n, text: n % 3 === 0 ? 'ö'.repeat(4_000) : '' })
  await waitFor('all events', () => numbersOf(reader).length === 9)
  expect(reader.frames.filter(({ event }) => event === 'e').map(({ data }) => data.n)).toEqual(range(9))
})

test('what nobody can repeat is counted, the subscribers are asked for anew, and the rest arrives', async () => {
  const one = await startTestRealtime(database, { openBus: memory.open, limits: { eventBytes: 1_000_000 } })
  started.push(one)
  const two = await start()
  const reader = await two.open()
  await reader.subscribe('private-a')
  await waitFor('the two to know each other', () => connectionsOf(one, 'private-a') === 1)
  memory.connects = () => false
  const late = await one.open()
  await late.subscribe('private-late')
  await publish(one, 1, 1)
  // Over the 16 MiB that a process keeps.
  const text = 'x'.repeat(900_000)
  for (let n = 1; n <= 19; n += 1) await one.sdk.trigger('private-large', 'large', text)
  await publish(one, 2, 2)
  memory.connects = () => true
  await publish(one, 3, 3)
  await waitFor('what is kept', () => numbersOf(reader).length === 2)
  expect(numbersOf(reader)).toEqual([2, 3])
  // The subscriber, the first event and at least one large one.
  expect(two.server.fleet().losses).toBeGreaterThanOrEqual(3)
  await waitFor('the lost subscriber', () => connectionsOf(two, 'private-late') === 1)
})

test('the last events of a process that stops arrive, although the bus lost them', async () => {
  const { one, reader } = await startTwo()
  memory.connects = () => false
  await publish(one, 1, 2)
  await one.server.stop()
  await waitFor('its last events', () => numbersOf(reader).length === 2)
  expect(numbersOf(reader)).toEqual(range(2))
})
