import { call } from '../api-client.ts'
import { monotonicMs } from '../monotonic.ts'
import { findMedian } from '../quantile.ts'
import { cpuPerDelivery, describeCost, explainCost } from './delivery-cost.ts'
import { fillLedger, readSizeMb } from './ledger-fill.ts'
import { makeAccounts, measureSaturation } from './saturation.ts'
import { openStage, type Stage, type StageOptions } from './stage.ts'
import type { LoadFigures } from './stage-load.ts'
import { measureSteady, p50Of, p99Of } from './steady.ts'
import type { Bound, Figure, TableRow } from './table-row.ts'
import type { Testbed } from './testbed.ts'

const FULL = { ended: 10_000_000, waiting: 1_000_000, webhooks: 100_000 }
/** Part of it in a default run. */
const SHARE = 1 / 20

const SUMMARY_REQUESTS = 20

/** The rows of saturation and steady rate with a grown ledger, beside the same without. */
export const growth: TableRow = {
  name: 'growth',
  title: `saturation and steady again with ${FULL.ended * SHARE} ended rows, ${FULL.waiting * SHARE} waiting retries, ${FULL.webhooks * SHARE} webhooks (--full: 20 times that)`,
  measure: async (testbed, stack) => {
    const share = testbed.isFull ? 1 : SHARE
    const size = { ended: FULL.ended * share, waiting: FULL.waiting * share, webhooks: FULL.webhooks * share }
    let filled = ''
    const small = await measureTestbed(testbed, stack, {})
    const grown = await measureTestbed(testbed, stack, {
      fill: async (client) => {
        const startedAt = monotonicMs()
        await fillLedger(client, { ...size, sinkOrigin: testbed.sinkOrigin })
        const seconds = Math.round((monotonicMs() - startedAt) / 1000)
        filled = `Writing the rows took ${seconds} s; the database has ${await readSizeMb(client)} MB.`
      },
    })
    const lost = grown.saturation.lost + grown.steady.lost
    return {
      figures: [
        ...compareLoads(grown, small),
        {
          what: 'dashboard summary, ms',
          value: grown.summaryMs,
          baseline: { what: 'without the rows', value: small.summaryMs },
          goal: { value: { atMost: 20 } },
        },
        { what: 'lost', value: lost, goal: { value: { atMost: 0 } } },
      ],
      notes: [
        filled,
        `At saturation: ${describeCost(grown.saturation)}`,
        `At a steady rate: ${describeCost(grown.steady)}`,
      ],
      reasons: explainCost(grown.steady),
    }
  },
}

interface Measured {
  saturation: LoadFigures
  steady: LoadFigures
  summaryMs: number
}

/** A tenth may be lost: of a rate, and of what is the better the smaller it is. */
const RATES: Bound = { atLeast: 0.9 }
const COSTS: Bound = { atMost: 1.11 }

/** The two loads with the rows beside those without. */
function compareLoads(grown: Measured, small: Measured): Figure[] {
  const compare = (what: string, read: (measured: Measured) => number | undefined, bound: Bound = COSTS): Figure => {
    const goal = { ratio: bound }
    return { what, value: read(grown), baseline: { what: 'without the rows', value: read(small) }, goal }
  }
  return [
    compare('saturation: events/s to arrival', ({ saturation }) => saturation.perSecond, RATES),
    compare('saturation: CPU ms a delivery', ({ saturation }) => cpuPerDelivery(saturation)),
    compare('steady: accepted to arrival p50, ms', ({ steady }) => p50Of(steady)),
    compare('steady: accepted to arrival p99, ms', ({ steady }) => p99Of(steady)),
    compare('steady: CPU ms a delivery', ({ steady }) => cpuPerDelivery(steady)),
  ]
}

async function measureTestbed(
  testbed: Testbed,
  parent: AsyncDisposableStack,
  options: StageOptions,
): Promise<Measured> {
  await using stack = parent.use(new AsyncDisposableStack())
  const stage = await openStage(testbed, stack, options)
  const accounts = await makeAccounts(stage)
  // First, while the caches hold nothing of it but what the warm-up of its own requests brings.
  const summaryMs = await measureSummary(stage)
  const steady = await measureSteady(stage, accounts, testbed.seconds)
  const saturation = await measureSaturation(stage, accounts, testbed.seconds)
  return { saturation, steady, summaryMs }
}

/** The median time of the dashboard's summary, request to answer, ms. */
async function measureSummary({ origin, jwt }: Stage): Promise<number> {
  const ask = async () => {
    const startedAt = monotonicMs()
    await call(origin, { jwt, method: 'GET', path: '/api/v3/webhook/dashboard/summary' })
    return monotonicMs() - startedAt
  }
  await ask()
  const times: number[] = []
  while (times.length < SUMMARY_REQUESTS) times.push(await ask())
  return findMedian(times)
}
