import { describeCost, explainCost } from './delivery-cost.ts'
import { measureDrain } from './drain.ts'
import type { TableRow } from './table-row.ts'

const FULL_COUNT = 500_000
const COUNT = 25_000
const BATCH_COUNT = 20_000

/** A backlog that one process works off. */
export const backlog: TableRow = {
  name: 'backlog',
  title: `${COUNT} due rows (--full: ${FULL_COUNT}) of 50 webhooks drain`,
  measure: async (testbed, stack) => {
    const count = testbed.isFull ? FULL_COUNT : COUNT
    const options = { count, processes: 1, batchCount: BATCH_COUNT, behaviour: 'ok' } as const
    const drain = await measureDrain(testbed, stack, options)
    return {
      figures: [
        {
          what: 'deliveries/s',
          value: drain.perSecond,
          baseline: { what: `${BATCH_COUNT} events recorded in batches`, value: drain.batchPerSecond },
          goal: { ratio: { atLeast: 1 } },
        },
        { what: 'memory of the process at most, MB', value: drain.peakMemoryMb, goal: { value: { atMost: 250 } } },
        { what: 'lost', value: drain.lost, goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: drain.duplicates, goal: { value: { atMost: 0 } } },
      ],
      notes: [`${drain.delivered} deliveries. What they took holds the writing of the rows.`, describeCost(drain)],
      reasons: explainCost(drain),
    }
  },
}
