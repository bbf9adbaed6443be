import { findQuantile } from '../quantile.ts'
import { openBareSide } from './bare-side.ts'
import { cpuPerDelivery, describeCost, explainCost, perDelivery } from './delivery-cost.ts'
import { makeAccounts, SUBSCRIBERS, warmUp } from './saturation.ts'
import { type LoadedSide, openStage } from './stage.ts'
import { type LoadFigures, runLoad } from './stage-load.ts'
import type { Figure, TableRow } from './table-row.ts'

/** Events a second. */
export const RATE = 100

/** Latency and cost of a delivery at a rate that is far from saturation. */
export const steady: TableRow = {
  name: 'steady',
  title: `${RATE} events/s, one a request, ${SUBSCRIBERS} webhooks of ${SUBSCRIBERS} accounts, each event to one of them`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    const accounts = await makeAccounts(stage)
    const load = await measureSteady(stage, accounts, testbed.seconds)
    const bareSide = await openBareSide(testbed, stack, { jwt: stage.jwt, delivers: true })
    const bare = await measureSteady(bareSide, accounts, testbed.seconds)
    const compare = (what: string, read: (of: LoadFigures) => number | undefined, atMost: number): Figure => ({
      what,
      value: read(load),
      baseline: { what: 'a bare Fastify route: begin, insert, commit, one POST', value: read(bare) },
      goal: { value: { atMost } },
    })
    return {
      figures: [
        compare('accepted to arrival p50, ms', p50Of, 1.5),
        compare('accepted to arrival p99, ms', p99Of, 6),
        compare('CPU ms a delivery', cpuPerDelivery, 2),
        { what: 'statements a delivery', value: perDelivery(load, 'statements'), goal: { value: { atMost: 6 } } },
        { what: 'lost', value: load.lost, goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: load.duplicates, goal: { value: { atMost: 0 } } },
      ],
      notes: [
        `${load.delivered} deliveries. Statements are those of the top level, begin and commit included, of the request, ` +
          'the delivery and what the service does once a second.',
        describeCost(load),
        `The bare route: ${describeCost(bare)}`,
      ],
      reasons: explainCost(load),
    }
  },
}

/** The median latency, ms. */
export const p50Of = (load: LoadFigures) => findQuantile(load.latenciesMs, 0.5)

/** The latency that 1 of 100 deliveries exceeds, ms. */
export const p99Of = (load: LoadFigures) => findQuantile(load.latenciesMs, 0.99)

/** Warms a side up and measures it at 100 events/s. */
export async function measureSteady(
  side: LoadedSide,
  accounts: readonly string[],
  seconds: number,
): Promise<LoadFigures> {
  await warmUp(side, accounts)
  return runLoad(side, { accounts, pace: { rate: RATE, seconds } })
}
