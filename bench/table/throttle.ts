import { EVENT_TYPE } from '../api-case.ts'
import { call } from '../api-client.ts'
import type { EventLoad, Pace } from '../publisher.ts'
import { findQuantile } from '../quantile.ts'
import { compareArrivals, type DeliveryOutcome } from './delivery-outcome.ts'
import { makeSubscribers, openStage, type Stage } from './stage.ts'
import { STALL_MS } from './stage-load.ts'
import type { TableRow } from './table-row.ts'

/** Webhooks: the first one has the limit. */
const WEBHOOKS = 50
const PER_SECOND = 50

/** Deliveries that start together, a tenth of a second's: one that arrives late or early is in another window. */
const TOGETHER = PER_SECOND / 10 + 1

/** Seconds of deliveries that the webhook with the limit has waiting when its seconds are counted. */
const SECONDS = 10

const BATCH = 1_000
const COUNT = 5_000
const WARM_UP_COUNT = 2_000
const RATE = 100
/** Deliveries that wait for the limit while the others are measured. */
const BACKLOG = 5_000
/** Measurements of the others, each while the backlog rests and while it is delivered. */
const ROUNDS = 3

/** A webhook with a limit a second, delivered by two processes, and the others beside it. */
export const throttle: TableRow = {
  name: 'throttle',
  title: `a webhook with a limit of ${PER_SECOND} a second in two processes, and ${WEBHOOKS - 1} others beside its backlog of ${BACKLOG}`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    await stage.startSecond({ SIGNALBOX_ROLES: 'api,dispatcher' })
    const subscribers = await makeSubscribers(stage, WEBHOOKS, (n) => `${testbed.sinkOrigin}/ok/${n}`)
    const { account, webhook } = subscribers[0]!
    const others = subscribers.slice(1).map((item) => item.account)
    const { jwt } = stage
    const path = `/api/v3/webhook/webhook/${webhook}`
    await call(stage.origin, { jwt, method: 'PATCH', path, body: { max_per_second: PER_SECOND } })
    await load(stage, others, { batch: BATCH, count: WARM_UP_COUNT })
    const limited = await load(stage, [account], { batch: PER_SECOND, count: SECONDS * PER_SECOND })
    await publish(stage, { accounts: [account], pace: { batch: BATCH, count: BACKLOG }, run: testbed.nextRun() })
    const [alone, beside] = [openPart(), openPart()]
    for (let round = 0; round < ROUNDS; round += 1)
      for (const part of [alone, beside]) {
        // The rows of an inactive webhook rest, so the ledger is the same in both parts.
        const body = { is_actived: part === beside }
        await call(stage.origin, { jwt, method: 'PATCH', path: `${path}/active`, body })
        part.batches.push(await load(stage, others, { batch: BATCH, count: COUNT }))
        part.steady.push(await load(stage, others, { rate: RATE, seconds: testbed.seconds }))
      }
    const loads = [limited, ...alone.batches, ...alone.steady, ...beside.batches, ...beside.steady]
    const windows = countWindows(limited.arrivedAtMs)
    const seconds = windows.slice(1, -1)
    const what = 'while the backlog rests'
    return {
      figures: [
        { what: 'second window', value: windows[1], goal: { value: { atLeast: PER_SECOND - 1 } } },
        {
          what: 'fewest of the seconds behind the first',
          value: Math.min(...seconds),
          goal: { value: { atLeast: PER_SECOND - TOGETHER } },
        },
        {
          what: 'most arrivals in any second',
          value: findMost(limited.arrivedAtMs),
          goal: { value: { atMost: PER_SECOND + TOGETHER } },
        },
        {
          what: 'others: deliveries/s of batches',
          value: meanRate(beside),
          baseline: { what, value: meanRate(alone) },
          goal: { ratio: { atLeast: 0.9 } },
        },
        {
          what: `others: p99 at ${RATE}/s, ms`,
          value: findP99(beside),
          baseline: { what, value: findP99(alone) },
          goal: { ratio: { atMost: 2 } },
        },
        {
          what: 'lost',
          value: loads.reduce((sum, item) => sum + item.lost, 0),
          goal: { value: { atMost: 0 } },
        },
      ],
      notes: [`Arrivals of the webhook with the limit by the second, since the first one: ${windows.join(' ')}.`],
      reasons: [],
    }
  },
}

interface Part {
  batches: Arrived[]
  steady: Arrived[]
}

const openPart = (): Part => ({ batches: [], steady: [] })

const meanRate = ({ batches }: Part) => batches.reduce((sum, { perSecond }) => sum + perSecond, 0) / batches.length

const findP99 = ({ steady }: Part) =>
  findQuantile(
    steady.flatMap(({ latenciesMs }) => latenciesMs),
    0.99,
  )

interface Arrived extends DeliveryOutcome {
  /** In their order. */
  arrivedAtMs: readonly number[]
}

/** Publishes events and waits for their arrivals. The service is not idle before or after: a backlog goes on. */
async function load(stage: Stage, accounts: readonly string[], pace: Pace): Promise<Arrived> {
  const { sink } = stage.testbed
  const run = stage.testbed.nextRun()
  await sink.ask({ do: 'begin', run, numberedBy: 'event' })
  const sent = await publish(stage, { accounts, pace, run })
  const arrivals = await sink.ask({ do: 'wait', arrivals: sent.accepted, repeats: 0, stallMs: STALL_MS })
  const arrivedAtMs = [...arrivals.firstAtMs].filter((at) => at > 0).sort((a, b) => a - b)
  return { ...compareArrivals(sent, arrivals, () => true), arrivedAtMs }
}

async function publish({ testbed, origin, jwt }: Stage, load: Pick<EventLoad, 'accounts' | 'pace' | 'run'>) {
  const sent = await testbed.publisher.ask({ origin, jwt, eventType: EVENT_TYPE, ...load })
  if (sent.firstError !== undefined) throw new Error(`${sent.refused} requests were refused: ${sent.firstError}`)
  return sent
}

/** Arrivals in each second since the first one. Pure. */
function countWindows(arrivedAtMs: readonly number[]): number[] {
  const counts: number[] = []
  for (const at of arrivedAtMs) {
    const second = Math.floor((at - arrivedAtMs[0]!) / 1_000)
    counts[second] = (counts[second] ?? 0) + 1
  }
  return Array.from(counts, (count) => count ?? 0)
}

/** The most arrivals within less than a second. Pure. */
function findMost(arrivedAtMs: readonly number[]): number {
  let [most, from] = [0, 0]
  for (const [index, at] of arrivedAtMs.entries()) {
    while (at - arrivedAtMs[from]! >= 1_000) from += 1
    most = Math.max(most, index - from + 1)
  }
  return most
}
