import { findQuantile } from '../quantile.ts'
import { cpuPerDelivery, describeCost, explainCost, perDelivery } from './delivery-cost.ts'
import { makeAccounts, SUBSCRIBERS, warmUp } from './saturation.ts'
import { openStage, type Stage } from './stage.ts'
import { type LoadFigures, runLoad } from './stage-load.ts'
import type { TableRow } from './table-row.ts'

const RATE = 100

/** Latency and cost of a delivery at a rate that is far from saturation. */
export const steady: TableRow = {
  name: 'steady',
  title: `${RATE} events/s, one a request, ${SUBSCRIBERS} webhooks of ${SUBSCRIBERS} accounts, each event to one of them`,
  measure: async (ground, stack) => {
    const stage = await openStage(ground, stack)
    const load = await measureSteady(stage, await makeAccounts(stage), ground.seconds)
    return {
      figures: [
        { what: 'accepted to arrival p50, ms', value: p50Of(load), goal: { value: { atMost: 1.5 } } },
        { what: 'accepted to arrival p99, ms', value: p99Of(load), goal: { value: { atMost: 6 } } },
        { what: 'CPU ms a delivery', value: cpuPerDelivery(load), goal: { value: { atMost: 2 } } },
        { what: 'statements a delivery', value: perDelivery(load, 'statements'), goal: { value: { atMost: 6 } } },
        { what: 'lost', value: load.lost, goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: load.duplicates, goal: { value: { atMost: 0 } } },
      ],
      notes: [
        `${load.delivered} deliveries. Statements are those of the top level, begin and commit included, of the request, ` +
          'the delivery and what the service does once a second.',
        describeCost(load),
      ],
      reasons: explainCost(load),
    }
  },
}

/** The median latency, ms. */
export const p50Of = (load: LoadFigures) => findQuantile(load.latenciesMs, 0.5)

/** The latency that 1 of 100 deliveries exceeds, ms. */
export const p99Of = (load: LoadFigures) => findQuantile(load.latenciesMs, 0.99)

/** Warms a stage up and measures it at 100 events/s. */
export async function measureSteady(stage: Stage, accounts: readonly string[], seconds: number): Promise<LoadFigures> {
  await warmUp(stage, accounts)
  return runLoad(stage, { accounts, pace: { rate: RATE, seconds } })
}
