import { CLIENTS, EVENT_TYPE } from '../api-case.ts'
import { openBareSide } from './bare-side.ts'
import { cpuPerDelivery, describeCost, explainCost } from './delivery-cost.ts'
import { type LoadedSide, makeSubscribers, openStage, type Stage } from './stage.ts'
import { type LoadFigures, runLoad } from './stage-load.ts'
import type { TableRow } from './table-row.ts'

/** Accounts with one webhook each: every event reaches exactly one. */
export const SUBSCRIBERS = 50

const WARM_UP_SECONDS = 2

/** One event a request from a closed loop of clients, measured until the last delivery arrived. */
export const saturation: TableRow = {
  name: 'saturation',
  title: `one event a request, ${CLIENTS} clients, ${SUBSCRIBERS} webhooks of ${SUBSCRIBERS} accounts, each event to one of them`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    const accounts = await makeAccounts(stage)
    const bareSide = await openBareSide(testbed, stack, { jwt: stage.jwt, delivers: false })
    const measureBare = (seconds: number) => measureAnswers(bareSide, accounts, seconds)
    await measureBare(1)
    // Half of the baseline on each side, so that a change of the machine's speed meets both.
    const early = await measureBare(testbed.seconds / 2)
    const load = await measureSaturation(stage, accounts, testbed.seconds)
    const late = await measureBare(testbed.seconds / 2)
    const bare = (early + late) / 2
    return {
      figures: [
        {
          what: 'events/s to arrival',
          value: load.perSecond,
          baseline: { what: 'a bare Fastify route: begin, insert, commit', value: bare },
          goal: { ratio: { atLeast: 0.5 } },
        },
        { what: 'CPU ms a delivery', value: cpuPerDelivery(load), goal: { value: { atMost: 0.8 } } },
        { what: 'lost', value: load.lost, goal: { value: { atMost: 0 } } },
        { what: 'duplicates', value: load.duplicates, goal: { value: { atMost: 0 } } },
      ],
      notes: [`${load.delivered} deliveries; CPU is of the service and PostgreSQL.`, describeCost(load)],
      reasons: explainCost(load),
    }
  },
}

/** Makes the accounts of a load, each with one webhook that answers at once. Returns their ids. */
export async function makeAccounts(stage: Stage, count = SUBSCRIBERS): Promise<string[]> {
  const subscribers = await makeSubscribers(stage, count, (n) => `${stage.testbed.sinkOrigin}/ok/${n}`)
  return subscribers.map((subscriber) => subscriber.account)
}

/**
 * Lets a side work as fast as it can for some 2,000 events, so that its code is compiled, its statements are planned on
 * their connections, and a rate measured next is not that of a start.
 */
export async function warmUp(side: LoadedSide, accounts: readonly string[]): Promise<void> {
  await runLoad(side, { accounts, pace: { clients: CLIENTS, seconds: WARM_UP_SECONDS } })
}

/** Warms a stage up and measures it at saturation. */
export async function measureSaturation(
  stage: Stage,
  accounts: readonly string[],
  seconds: number,
): Promise<LoadFigures> {
  await warmUp(stage, accounts)
  return runLoad(stage, { accounts, pace: { clients: CLIENTS, seconds } })
}

/** Events a second that a server accepts from the same clients. Throws when one was refused. */
export async function measureAnswers(
  { testbed, origin, jwt }: LoadedSide,
  accounts: readonly string[],
  seconds: number,
): Promise<number> {
  const pace = { clients: CLIENTS, seconds }
  const run = testbed.nextRun()
  const load = await testbed.publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts, run, pace })
  if (load.firstError !== undefined) throw new Error(load.firstError)
  return load.accepted / ((load.endedAtMs - load.startedAtMs) / 1000)
}
