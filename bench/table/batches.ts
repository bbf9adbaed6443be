import { findMedian } from '../quantile.ts'
import { describeCost, explainCost, perDelivery } from './delivery-cost.ts'
import { makeAccounts, SUBSCRIBERS } from './saturation.ts'
import { openStage, type Stage } from './stage.ts'
import { type LoadFigures, runLoad } from './stage-load.ts'
import type { TableRow } from './table-row.ts'
import type { Testbed } from './testbed.ts'

/** Events a request. */
const BATCH = 1_000
const COUNT = 20_000
const ROUNDS = 2
/** POSTs of a bare loop: some two seconds. */
const BARE_COUNT = 50_000

/** Events recorded by the thousand, beside a bare loop that makes the same POSTs. */
export const batches: TableRow = {
  name: 'batches',
  title: `${COUNT} events recorded ${BATCH} a request, ${SUBSCRIBERS} webhooks, each event to one of them`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    const accounts = await makeAccounts(stage)
    const rounds = await compareBatches(stage, accounts, { count: COUNT, rounds: ROUNDS })
    const loads = rounds.map((round) => round.load)
    const last = loads.at(-1) as LoadFigures
    const wal = perDelivery(last, 'walBytes')
    return {
      figures: [
        {
          what: 'deliveries/s',
          value: findMedian(loads.map((load) => load.perSecond)),
          baseline: { what: 'a bare undici loop', value: findMedian(rounds.map((round) => round.bare)) },
          goal: { ratio: { atLeast: 0.45 } },
        },
        { what: 'WAL bytes a delivery', value: wal },
        { what: 'lost', value: sum(loads, 'lost'), goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: sum(loads, 'duplicates'), goal: { value: { atMost: 0 } } },
      ],
      notes: ['Medians of the rounds. A ratio of 0.30 is the least.', describeCost(last)],
      reasons: explainCost(last),
    }
  },
}

const sum = (loads: readonly LoadFigures[], member: 'lost' | 'duplicates') =>
  loads.reduce((total, item) => total + item[member], 0)

/** A round: the service's deliveries, and POSTs a second of the bare loop right before. */
export interface BatchRound {
  load: LoadFigures
  bare: number
}

/** Warms up, then measures the bare loop and the service in turn, `count` deliveries each. */
export async function compareBatches(
  stage: Stage,
  accounts: readonly string[],
  { count, rounds }: { count: number; rounds: number },
): Promise<BatchRound[]> {
  const { testbed } = stage
  const measureBare = () => measureBareLoop(testbed, accounts.length)
  await measureBare()
  await measureBatches(stage, accounts, Math.min(count, 5 * BATCH))
  const measured: BatchRound[] = []
  while (measured.length < rounds) {
    const bare = await measureBare()
    measured.push({ bare, load: await measureBatches(stage, accounts, count) })
  }
  return measured
}

/** POSTs a second of the bare loop, to so many paths of the sink. */
export function measureBareLoop(testbed: Testbed, paths: number): Promise<number> {
  return testbed.poster.ask({ origin: testbed.sinkOrigin, count: BARE_COUNT, paths })
}

/** Records `count` events by the batch and measures until the last one arrived. */
export function measureBatches(stage: Stage, accounts: readonly string[], count: number): Promise<LoadFigures> {
  return runLoad(stage, { accounts, pace: { batch: BATCH, count } })
}
