import { untilInterrupted } from './interruption.ts'
import { findMedian } from './quantile.ts'
import { compareBatches } from './table/batches.ts'
import { makeAccounts } from './table/saturation.ts'
import { openStage } from './table/stage.ts'
import { openTestbed } from './table/testbed.ts'

/**
 * Measures deliveries a second through the whole path (events published by the thousand, recorded durably, routed, signed,
 * posted, and the results recorded), beside a bare undici loop that posts a signed body to the same sink in the same run.
 * Prints both and their ratio for each round, and the median ratio. Machines differ; the ratio is what to compare.
 */
export async function measureDeliveries({ count, rounds }: { count: number; rounds: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const testbed = await openTestbed(stack, { seconds: 0, isFull: false })
    const stage = await openStage(testbed, stack)
    const measured = await compareBatches(stage, await makeAccounts(stage), { count, rounds })
    const ratios = measured.map(({ load, bare }) => load.perSecond / bare)
    for (const [index, { load, bare }] of measured.entries()) {
      const path = `whole path ${Math.round(load.perSecond)} deliveries/s`
      const ratio = ratios[index]?.toFixed(3)
      console.log(`round ${index + 1}: ${path}, bare undici loop ${Math.round(bare)} POSTs/s, ratio ${ratio}`)
    }
    console.log(`median ratio ${findMedian(ratios).toFixed(3)} (${count} deliveries a round, ${rounds} rounds)`)
  })
}
