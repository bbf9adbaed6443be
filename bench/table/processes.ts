import { explainCost } from './delivery-cost.ts'
import { type DrainOptions, measureDrain } from './drain.ts'
import type { TableRow } from './table-row.ts'

const COUNT = 25_000
const BATCH_COUNT = 10_000

/** POSTs that a process has in flight at most where the receiver takes its time. */
const IN_FLIGHT = 16
const WAIT_MS = 50
/** Some 10 s of deliveries of one process: 16 at once, 50 ms each. */
const WAIT_COUNT = 3_000

/** Two dispatching processes on one database beside one. */
export const processes: TableRow = {
  name: 'processes',
  title: `two processes work off ${COUNT} due rows; and with a receiver that takes ${WAIT_MS} ms, ${IN_FLIGHT} POSTs in flight each`,
  measure: async (testbed, stack) => {
    const measure = (options: DrainOptions) => measureDrain(testbed, stack, options)
    const quick = { count: COUNT, batchCount: BATCH_COUNT, behaviour: 'ok' } as const
    const [single, double] = [await measure({ ...quick, processes: 1 }), await measure({ ...quick, processes: 2 })]
    const slow = {
      count: WAIT_COUNT,
      batchCount: 500,
      behaviour: `wait-${WAIT_MS}`,
      environment: { WEBHOOK_CONCURRENCY: String(IN_FLIGHT) },
    } as const
    const slowOne = await measure({ ...slow, processes: 1 })
    const slowTwo = await measure({ ...slow, processes: 2, count: 2 * WAIT_COUNT })
    const all = [single, double, slowOne, slowTwo]
    const total = (member: 'lost' | 'duplicates') => all.reduce((sum, drain) => sum + drain[member], 0)
    return {
      figures: [
        {
          what: 'deliveries/s of two processes',
          value: double.perSecond,
          baseline: { what: 'one process', value: single.perSecond },
          goal: { ratio: { atLeast: 1 } },
        },
        {
          what: `the same, the receiver takes ${WAIT_MS} ms`,
          value: slowTwo.perSecond,
          baseline: { what: 'one process', value: slowOne.perSecond },
          goal: { ratio: { atLeast: 1.9 } },
        },
        { what: 'lost', value: total('lost'), goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: total('duplicates'), goal: { value: { atMost: 0 } } },
      ],
      notes: [
        `In flight at once, ${IN_FLIGHT} POSTs of ${WAIT_MS} ms make ${(1000 / WAIT_MS) * IN_FLIGHT} deliveries/s at most.`,
      ],
      reasons: [
        'With two processes on quick receivers, CPU of the service being that of the first:',
        ...explainCost(double),
      ],
    }
  },
}
