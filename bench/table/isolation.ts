import { EVENT_TYPE } from '../api-case.ts'
import { explainCost } from './delivery-cost.ts'
import { makeSubscribers, openStage, type Stage, withClient } from './stage.ts'
import { type LoadFigures, runLoad, type StageLoad } from './stage-load.ts'
import { p99Of } from './steady.ts'
import type { TableRow } from './table-row.ts'
import type { Testbed } from './testbed.ts'

/** Of each ten webhooks the first two hang and the third refuses the connection. */
const WEBHOOKS = 100
const isHealthy = (n: number) => n % 10 >= 3
const HEALTHY_SHARE = 0.7

const RATE = 100
const BATCH = 1_000
const COUNT = 10_000
const WARM_UP_COUNT = 2_000
/** Events that the sick webhooks have waiting when the batches of the others are measured: 100 each. */
const SICK_COUNT = 3_000

/** Cost of sick webhooks for the others, in batches and at a steady rate. */
export const isolation: TableRow = {
  name: 'isolation',
  title: `of ${WEBHOOKS} webhooks 20 hang and 10 refuse; the others beside the same load without the sick ones`,
  measure: async (testbed, stack) => {
    const measure = (part: Part) => measurePart(testbed, stack, part)
    const alone = await measure({ isAlone: true, isBatch: true })
    const among = await measure({ isAlone: false, isBatch: true })
    const steadyAlone = await measure({ isAlone: true, isBatch: false })
    const steadyAmong = await measure({ isAlone: false, isBatch: false })
    const what = 'without the sick webhooks'
    return {
      figures: [
        {
          what: 'healthy: deliveries/s of batches',
          value: among.perSecond,
          baseline: { what, value: alone.perSecond },
          goal: { ratio: { atLeast: 0.9 } },
        },
        {
          what: `healthy: p99 at ${RATE}/s over all, ms`,
          value: p99Of(steadyAmong),
          baseline: { what, value: p99Of(steadyAlone) },
          goal: { ratio: { atMost: 2 } },
        },
        { what: 'healthy: lost', value: among.lost + steadyAmong.lost, goal: { value: { atMost: 0 } } },
      ],
      notes: [
        `Beside the batches the service made ${among.sickAttempts} attempts for the sick webhooks, refused or hanging.`,
        `${COUNT} events in batches of ${BATCH} for the healthy webhooks, while the sick ones have ${SICK_COUNT} waiting; ` +
          `then ${RATE} events/s over all webhooks, beside ${HEALTHY_SHARE * RATE} over the healthy ones.`,
      ],
      reasons: explainCost(among),
    }
  },
}

interface Part {
  /** Whether the sick webhooks get no events. */
  isAlone: boolean
  isBatch: boolean
}

interface PartFigures extends LoadFigures {
  /** Attempts for the sick webhooks until the healthy ones had everything. */
  sickAttempts: number
}

/** Each part has a service of its own: what hangs long enough is disabled, so a second load would not meet it. */
async function measurePart(testbed: Testbed, parent: AsyncDisposableStack, part: Part): Promise<PartFigures> {
  await using stack = parent.use(new AsyncDisposableStack())
  const stage = await openStage(testbed, stack)
  // A stopping service waits for its POSTs, and these hang.
  stack.defer(() => stage.service.kill())
  const { sinkOrigin, refusingOrigin } = testbed
  const urlOf = (n: number) => {
    if (isHealthy(n)) return `${sinkOrigin}/ok/${n}`
    return n % 10 < 2 ? `${sinkOrigin}/hang/${n}` : `${refusingOrigin}/${n}`
  }
  const everyone = (await makeSubscribers(stage, WEBHOOKS, urlOf)).map((item) => item.account)
  const healthy = everyone.filter((_account, n) => isHealthy(n))
  await runLoad(stage, { accounts: healthy, pace: { batch: BATCH, count: WARM_UP_COUNT } })
  const sick = everyone.filter((_account, n) => !isHealthy(n))
  if (part.isBatch && !part.isAlone) await publishUnmeasured(stage, sick)
  const figures = await runLoad(stage, buildLoad(part, { everyone, healthy, seconds: 2 * testbed.seconds }))
  return { ...figures, sickAttempts: await countAttempts(stage, sick) }
}

interface LoadParts {
  everyone: readonly string[]
  healthy: readonly string[]
  seconds: number
}

function buildLoad({ isBatch, isAlone }: Part, { everyone, healthy, seconds }: LoadParts): StageLoad {
  if (isBatch) return { accounts: healthy, pace: { batch: BATCH, count: COUNT } }
  if (isAlone) return { accounts: healthy, pace: { rate: HEALTHY_SHARE * RATE, seconds } }
  return { accounts: everyone, pace: { rate: RATE, seconds }, isCounted: isHealthy }
}

async function countAttempts(stage: Stage, accounts: readonly string[]): Promise<number> {
  const text = `select count(*)::int as attempts from webhook_attempt_log a join webhook_dispatch d on d.document_id = a.dispatch
    where d.account = any($1)`
  return withClient(stage.connectionString, async (client) => {
    const { rows } = await client.query<{ attempts: number }>(text, [accounts])
    return rows[0]?.attempts ?? 0
  })
}

/** Records what keeps the sick webhooks busy: their POSTs hang for 15 s, or fail at once and wait for a retry. */
async function publishUnmeasured({ testbed, origin, jwt }: Stage, accounts: readonly string[]): Promise<void> {
  const pace = { batch: BATCH, count: SICK_COUNT }
  const load = { origin, jwt, eventType: EVENT_TYPE, accounts, run: testbed.nextRun(), pace }
  const { firstError } = await testbed.publisher.ask(load)
  if (firstError !== undefined) throw new Error(firstError)
}
