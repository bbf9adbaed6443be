import { EVENT_TYPE } from '../api-case.ts'
import { describeCost, explainCost } from './delivery-cost.ts'
import { fillWebhooks } from './ledger-fill.ts'
import { makeAccounts, warmUp } from './saturation.ts'
import { openStage, type StageOptions } from './stage.ts'
import { type LoadFigures, runLoad } from './stage-load.ts'
import { p50Of, p99Of } from './steady.ts'
import type { TableRow } from './table-row.ts'
import type { Testbed } from './testbed.ts'

const OTHERS = 10_000
const RATE = 40

/** Cost of webhooks that subscribe to the same event type and never receive the event. */
export const subscribers: TableRow = {
  name: 'subscribers',
  title: `${OTHERS} webhooks of other accounts subscribe to the same type, ${RATE} events/s to 50 webhooks`,
  measure: async (testbed, stack) => {
    const alone = await measureRate(testbed, stack, {})
    const among = await measureRate(testbed, stack, {
      fill: async (client) => {
        const { sinkOrigin } = testbed
        await fillWebhooks(client, { count: OTHERS, accounts: 'one each', eventType: EVENT_TYPE, sinkOrigin })
        await client.query('vacuum analyze')
      },
    })
    const what = 'without them'
    const goal = { ratio: { atMost: 1.2 } }
    return {
      figures: [
        {
          what: 'accepted to arrival p50, ms',
          value: p50Of(among),
          baseline: { what, value: p50Of(alone) },
          goal,
        },
        {
          what: 'accepted to arrival p99, ms',
          value: p99Of(among),
          baseline: { what, value: p99Of(alone) },
          goal,
        },
        { what: 'lost', value: among.lost, goal: { value: { atMost: 0 } } },
      ],
      notes: [`${among.delivered} deliveries.`, describeCost(among)],
      reasons: explainCost(among),
    }
  },
}

async function measureRate(
  testbed: Testbed,
  parent: AsyncDisposableStack,
  options: StageOptions,
): Promise<LoadFigures> {
  await using stack = parent.use(new AsyncDisposableStack())
  const stage = await openStage(testbed, stack, options)
  const accounts = await makeAccounts(stage)
  await warmUp(stage, accounts)
  // Twice as long as other rows: at this rate a second holds few deliveries for a p99.
  return await runLoad(stage, { accounts, pace: { rate: RATE, seconds: 2 * testbed.seconds } })
}
