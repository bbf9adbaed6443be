import { setTimeout as sleep } from 'node:timers/promises'
import { EVENT_TYPE } from '../api-case.ts'
import { findMedian } from '../quantile.ts'
import { measureBareLoop } from './batches.ts'
import { describeCost, explainCost } from './delivery-cost.ts'
import { fillWebhooks } from './ledger-fill.ts'
import { openStage, type Stage, withClient } from './stage.ts'
import { meterWork } from './stage-load.ts'
import type { TableRow } from './table-row.ts'

const WEBHOOKS = 10_000
const ROUNDS = 2
/** Without an arrival for so long, the rest counts as lost: longer than a statement of the service may run. */
const STALL_MS = 60_000

/** One event to many webhooks of its account. */
export const fanOut: TableRow = {
  name: 'fan-out',
  title: `one event to ${WEBHOOKS} webhooks of its account`,
  measure: async (testbed, stack) => {
    let account = ''
    const stage = await openStage(testbed, stack, {
      fill: async (client) => {
        const { sinkOrigin, secretKey } = testbed
        const webhooks = { count: WEBHOOKS, eventType: EVENT_TYPE, sinkOrigin, secretKey }
        account = await fillWebhooks(client, { ...webhooks, accounts: 'one for all' })
        await client.query('vacuum analyze')
      },
    })
    await measureBareLoop(testbed, WEBHOOKS)
    await publishOne(stage, account)
    const bare: number[] = []
    const rounds: FanOut[] = []
    while (rounds.length < ROUNDS) {
      bare.push(await measureBareLoop(testbed, WEBHOOKS))
      rounds.push(await publishOne(stage, account))
    }
    const last = rounds.at(-1) as FanOut
    const total = (member: 'lost' | 'duplicates') => rounds.reduce((sum, item) => sum + item[member], 0)
    return {
      figures: [
        {
          what: 'deliveries/s, request to last arrival',
          value: findMedian(rounds.map((round) => round.perSecond)),
          baseline: { what: 'a bare undici loop', value: findMedian(bare) },
          goal: { ratio: { atLeast: 0.5 } },
        },
        { what: 'request to first arrival, ms', value: findMedian(rounds.map((round) => round.firstMs)) },
        { what: 'lost', value: total('lost'), goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: total('duplicates'), goal: { value: { atMost: 0 } } },
      ],
      notes: ['Medians of the rounds; the first event is not counted.', describeCost(last)],
      reasons: explainCost(last),
    }
  },
}

type FanOut = Awaited<ReturnType<typeof publishOne>>

/** Interval between looks at the outcomes, and their limit: the service adds them up every 5 s. */
const FOLD_LOOK_MS = 250
const FOLD_LIMIT_MS = 30_000

/** Waits until the outcomes of the deliveries are added up: that is a part of their cost, behind the last arrival. */
async function waitUntilAddedUp(connectionString: string): Promise<void> {
  await withClient(connectionString, async (client) => {
    for (let waitedMs = 0; ; waitedMs += FOLD_LOOK_MS) {
      const { rows } = await client.query('select count(*)::int as open from webhook_outcome_batch')
      if (rows[0].open === 0 && waitedMs > 0) return
      if (waitedMs > FOLD_LIMIT_MS) throw new Error('The outcomes were not added up.')
      await sleep(FOLD_LOOK_MS)
    }
  })
}

/** Publishes one event of the account and waits until every webhook has it. */
async function publishOne(stage: Stage, account: string) {
  const { testbed, origin, jwt } = stage
  const { result, cost } = await meterWork(stage, async () => {
    const run = testbed.nextRun()
    await testbed.sink.ask({ do: 'begin', run, numberedBy: 'path' })
    const event = { origin, jwt, eventType: EVENT_TYPE, accounts: [account], run, pace: { batch: 1, count: 1 } }
    const load = await testbed.publisher.ask(event)
    if (load.firstError !== undefined) throw new Error(load.firstError)
    const state = await testbed.sink.ask({ do: 'wait', arrivals: WEBHOOKS, repeats: 0, stallMs: STALL_MS })
    await waitUntilAddedUp(stage.connectionString)
    return { load, state }
  })
  const { load, state } = result
  const arrivedAtMs = state.firstAtMs.filter((at) => at > 0).sort()
  const sinceRequest = (at: number | undefined) => (at === undefined ? undefined : at - load.startedAtMs)
  const lastMs = sinceRequest(arrivedAtMs.at(-1))
  return {
    ...cost,
    delivered: state.arrivals,
    lost: WEBHOOKS - state.arrivals,
    duplicates: state.repeats,
    perSecond: lastMs === undefined ? 0 : state.arrivals / (lastMs / 1000),
    firstMs: sinceRequest(arrivedAtMs[0]) ?? STALL_MS,
  }
}
