import { openSides } from './api-sides.ts'
import { startProgram } from './child-process.ts'
import { untilInterrupted } from './interruption.ts'
import { findMedian } from './quantile.ts'
import type { OpenLoad, OpenLoadResult } from './storm-client.ts'
import { formatTable } from './text-table.ts'

/** Wrong passwords a second, each from an address of its own. */
const STORM_PER_SECOND = 500

/** Reads a second whose latency is measured: far below what the service answers. */
const READS_PER_SECOND = 200

const WARM_UP_SECONDS = 3

/** Each attempt has an address of its own; what the service refuses under load is not written to the terminal. */
const ENVIRONMENT = { TRUST_PROXY: 'loopback', LOG_LEVEL: 'fatal' }

/** The most that the storm may multiply the p99 of other requests by. */
const GOAL = 2

/** One round: the same reads without and with the storm. */
interface StormRound {
  quiet: OpenLoadResult
  stormy: OpenLoadResult
  storm: OpenLoadResult
}

/**
 * Measures the latency of authenticated reads while nothing else happens and while wrong passwords arrive, in turn, and
 * prints both with their ratio. The service trusts the `X-Forwarded-For` of this machine, so that each attempt has an
 * address of its own.
 */
export async function measureStorm({ seconds, rounds }: { seconds: number; rounds: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const sides = await openSides(stack, { nodeArguments: [], environment: ENVIRONMENT })
    const { service, fixture, database } = sides
    console.log(`${database}. ${STORM_PER_SECOND} wrong passwords a second beside ${READS_PER_SECOND} reads.`)
    const [reader, stormer] = [startClient(stack), startClient(stack)]
    const path = `/api/v3/contract/contract/${fixture.contracts[0]}`
    const base = { origin: service.origin, path, jwt: fixture.jwt }
    const read = (time: number) => reader.ask({ ...base, kind: 'read', perSecond: READS_PER_SECOND, seconds: time })
    const attack = (time: number, perSecond = STORM_PER_SECOND) =>
      stormer.ask({ ...base, kind: 'wrong-password', perSecond, seconds: time })
    await Promise.all([read(WARM_UP_SECONDS), attack(WARM_UP_SECONDS, STORM_PER_SECOND / 10)])
    const measured: StormRound[] = []
    for (let round = 1; round <= rounds; round += 1) {
      const quiet = await read(seconds)
      // The storm begins first and ends last.
      const storm = attack(seconds + WARM_UP_SECONDS)
      await read(WARM_UP_SECONDS / 2)
      measured.push({ quiet, stormy: await read(seconds), storm: await storm })
    }
    console.log(`\n${formatStorm(measured)}`)
  })
}

function startClient(stack: AsyncDisposableStack) {
  const client = startProgram<OpenLoad, OpenLoadResult>('storm-client.ts')
  stack.defer(() => client.stop())
  return client
}

/**
 * The table of the rounds, and the ratio of their medians beside its goal: a round in which the machine itself stood still
 * decides nothing. Pure.
 */
function formatStorm(rounds: readonly StormRound[]): string {
  const lines = rounds.map(({ quiet, stormy, storm }) => [
    quiet.p50Ms.toFixed(2),
    stormy.p50Ms.toFixed(2),
    quiet.p99Ms.toFixed(2),
    stormy.p99Ms.toFixed(2),
    (stormy.p99Ms / quiet.p99Ms).toFixed(2),
    Object.entries(storm.statuses)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', '),
  ])
  const quietMs = findMedian(rounds.map(({ quiet }) => quiet.p99Ms))
  const stormMs = findMedian(rounds.map(({ stormy }) => stormy.p99Ms))
  const ratio = stormMs / quietMs
  const verdict = ratio <= GOAL ? 'at goal' : 'above'
  const head = ['quiet p50 ms', 'storm p50 ms', 'quiet p99 ms', 'storm p99 ms', 'ratio', 'answers to the storm']
  return `${formatTable(head, lines)}\n\nMedian p99: ${quietMs.toFixed(2)} ms quiet, ${stormMs.toFixed(2)} ms in the storm. Ratio ${ratio.toFixed(2)}, goal at most ${GOAL.toFixed(2)}: ${verdict}.`
}
