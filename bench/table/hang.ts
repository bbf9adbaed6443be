import { describeCost, explainCost } from './delivery-cost.ts'
import { warmUp } from './saturation.ts'
import { makeSubscribers, openStage } from './stage.ts'
import { runLoad } from './stage-load.ts'
import { p50Of, p99Of } from './steady.ts'
import type { TableRow } from './table-row.ts'

/** Endpoints, those of them that hang, and events a second over all. */
export const ENDPOINTS = 20
export const HANGING = 4
export const RATE = 60

/** Latency of the endpoints that answer while some never do. */
export const hang: TableRow = {
  name: 'hang',
  title: `${HANGING} of ${ENDPOINTS} endpoints hang, ${RATE} events/s over all; figures of the others`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    // A stopping service waits for its POSTs, and these hang.
    stack.defer(() => stage.service.kill())
    const urlOf = (n: number) => `${testbed.sinkOrigin}/${n < HANGING ? 'hang' : 'ok'}/${n}`
    const accounts = (await makeSubscribers(stage, ENDPOINTS, urlOf)).map((item) => item.account)
    const healthy = accounts.slice(HANGING)
    await warmUp(stage, healthy)
    // Twice as long as other rows: a hanging POST ends after 15 s.
    const pace = { rate: RATE, seconds: 2 * testbed.seconds }
    const load = await runLoad(stage, { accounts, pace, isCounted: (n) => n % ENDPOINTS >= HANGING })
    return {
      figures: [
        { what: 'healthy: accepted to arrival p50, ms', value: p50Of(load), goal: { value: { atMost: 1.5 } } },
        { what: 'healthy: accepted to arrival p99, ms', value: p99Of(load), goal: { value: { atMost: 8 } } },
        { what: 'healthy: lost', value: load.lost, goal: { value: { atMost: 0 } } },
        { what: 'healthy: duplicates', value: load.duplicates, goal: { value: { atMost: 0 } } },
      ],
      notes: [`${load.delivered} deliveries to healthy endpoints in ${pace.seconds} s.`, describeCost(load)],
      reasons: explainCost(load),
    }
  },
}
