import pg from 'pg'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { limit } from '../../../test/harness/run/wait.ts'
import { systemRandom } from '../../base/random.ts'
import { buildNotifier, type Notifier } from './notify.ts'

const database = await openForFile(createTestDatabase({ content: 'empty' }))

interface Sleeper extends AsyncDisposable {
  notifier: Notifier
  clock: ManualClock
  /** The number of calls of `onWork`. */
  told(): number
  errors: unknown[]
  running: Promise<void>
}

/** The notifier of one process, with a clock of its own. */
function startSleeper(options: { isListening?: boolean; connectionString?: string } = {}): Sleeper {
  const connectionString = options.connectionString ?? database.connectionString
  const clock = buildManualClock()
  const errors: unknown[] = []
  let told = 0
  const notifier = buildNotifier({
    connectionString,
    clock,
    random: systemRandom,
    ...(options.isListening !== false && {
      onWork: () => {
        told += 1
      },
    }),
    onError: (error) => void errors.push(error),
  })
  const running = notifier.run()
  return {
    notifier,
    clock,
    told: () => told,
    errors,
    running,
    [Symbol.asyncDispose]: async () => {
      await stop({ notifier, clock })
      await running
    },
  }
}

/** Stops, and advances the clock by the timeout for closing. */
async function stop({ notifier, clock }: Pick<Sleeper, 'notifier' | 'clock'>): Promise<void> {
  const stopped = notifier.stop()
  clock.advance(500)
  await stopped
}

const untilTold = (sleeper: Sleeper, count: number) => expect.poll(() => sleeper.told()).toBeGreaterThanOrEqual(count)

/** Notifies, and advances the clock by the time in which notifications become one. */
function announce(sleeper: Sleeper): void {
  sleeper.notifier.notify()
  sleeper.clock.advance(20)
}

/** All notifications of the channel, received by a plain connection. */
async function startEar() {
  const client = new pg.Client({ connectionString: database.connectionString })
  await client.connect()
  await client.query('listen signalbox_work')
  let heard = 0
  client.on('notification', () => {
    heard += 1
  })
  return {
    heard: () => heard,
    [Symbol.asyncDispose]: () => client.end(),
  }
}

const cutListeners = () =>
  database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'signalbox listen'`,
  )

test('a notification reaches every other process that listens', async () => {
  await using sender = startSleeper({ isListening: false })
  await using first = startSleeper()
  await using second = startSleeper()
  for (const listener of [first, second]) await untilTold(listener, 1)
  sender.notifier.notify()
  sender.clock.advance(20)
  for (const listener of [first, second]) await untilTold(listener, 2)
})

test('calls of notify within 20 ms send one notification, later ones another', async () => {
  await using sender = startSleeper({ isListening: false })
  await using ear = await startEar()
  for (let n = 0; n < 100; n += 1) sender.notifier.notify()
  sender.clock.advance(19)
  sender.clock.advance(1)
  await expect.poll(() => ear.heard()).toBe(1)
  announce(sender)
  await expect.poll(() => ear.heard()).toBe(2)
})

test('a listener whose connection is lost reconnects after a second, reports missed work, and is notified again', async () => {
  await using sender = startSleeper({ isListening: false })
  await using listener = startSleeper()
  await untilTold(listener, 1)
  for (let round = 1; round <= 3; round += 1) {
    const before = listener.told()
    await cutListeners()
    const reconnect = async () => {
      listener.clock.advance(1_000)
      return listener.told()
    }
    await expect.poll(reconnect).toBe(before + 1)
    announce(sender)
    await untilTold(listener, before + 2)
  }
  const { rowCount } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'signalbox listen'`,
  )
  expect(rowCount).toBe(1)
})

test('a process without workers opens no listening connection and still notifies', async () => {
  await using sender = startSleeper({ isListening: false })
  await sender.running
  const { rowCount } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'signalbox listen'`,
  )
  expect(rowCount).toBe(0)
  await using ear = await startEar()
  announce(sender)
  await expect.poll(() => ear.heard()).toBe(1)
})

test('without a database, notify and listen report to onError without a throw, and the own process is notified', async () => {
  await using lost = startSleeper({ connectionString: 'postgres://nobody@127.0.0.1:1/none' })
  await expect.poll(() => lost.errors.length).toBe(1)
  announce(lost)
  expect(lost.told()).toBe(1)
  await expect.poll(() => lost.errors.length).toBe(2)
  lost.clock.advance(1_000)
  await expect.poll(() => lost.errors.length).toBe(3)
})

test('a stop at any step of connecting ends it at once', async () => {
  for (let turns = 0; turns < 40; turns += 1) {
    const sleeper = startSleeper()
    // Each turn of the event loop advances the connection.
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    await limit(stop(sleeper), 60_000, `the stop after ${turns} turns`)
    await limit(sleeper.running, 60_000, `the end after ${turns} turns`)
  }
})

test('a stop ends it at once, without further notifications or open connections', async () => {
  await using sender = startSleeper({ isListening: false })
  await using ear = await startEar()
  await using listener = startSleeper()
  await untilTold(listener, 1)
  sender.notifier.notify()
  await limit(sender.notifier.stop(), 60_000, 'a stop with an announcement in flight')
  await stop(listener)
  await limit(listener.running, 60_000, 'the end of a stopped listener')
  sender.clock.advance(1_000)
  const count = async () =>
    (
      await database.pool.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'signalbox listen'`,
      )
    ).rowCount
  await expect.poll(count).toBe(0)
  expect(ear.heard()).toBe(0)
  const before = listener.told()
  await database.pool.query('notify signalbox_work')
  await expect.poll(() => ear.heard()).toBe(1)
  expect(listener.told()).toBe(before)
})
