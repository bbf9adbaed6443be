import { EVENT_TYPE } from '../api-case.ts'
import { type StatementCost, subtractUsage, type Usage } from '../meter.ts'
import { monotonicMs } from '../monotonic.ts'
import type { Pace } from '../publisher.ts'
import { compareArrivals, type DeliveryOutcome } from './delivery-outcome.ts'
import type { LoadedSide } from './stage.ts'

/** A load on a side. */
export interface StageLoad {
  /** Event number n is of account n, in turn. */
  accounts: readonly string[]
  pace: Pace
  /** Which events must arrive and make the figures; all when it is left out. */
  isCounted?: (n: number) => boolean
}

/** Result of a load, and its cost. */
export interface LoadFigures extends DeliveryOutcome, WorkCost {}

/** Without an arrival for so long, the rest counts as lost. */
export const STALL_MS = 15_000

/** Cost of work on a side, until its server was idle again. */
export interface WorkCost {
  usage: Usage
  /** From the start of the work until the service was idle. */
  wallMs: number
  /** Statements in the service's database meanwhile. */
  statements: StatementCost[]
}

/** Performs `work` while the side is idle otherwise, and measures what its server and PostgreSQL used for it. */
export async function meterWork<Result>(
  side: LoadedSide,
  work: () => Promise<Result>,
): Promise<{ result: Result; cost: WorkCost }> {
  const { meter } = side.testbed
  await meter.waitForQuiet(side)
  const statementsBefore = await meter.listStatements(side)
  const before = await meter.read(side)
  const startedAt = monotonicMs()
  const result = await work()
  await meter.waitForQuiet(side)
  const usage = subtractUsage(await meter.read(side), before)
  const wallMs = monotonicMs() - startedAt
  const statements = subtractStatements(await meter.listStatements(side), statementsBefore)
  return { result, cost: { usage, wallMs, statements } }
}

/** Publishes a load, waits for its arrivals and measures. Throws when a request was refused: rates would mean nothing. */
export async function runLoad(
  side: LoadedSide,
  { accounts, pace, isCounted = () => true }: StageLoad,
): Promise<LoadFigures> {
  const { testbed, origin, jwt } = side
  const { result, cost } = await meterWork(side, async () => {
    const run = testbed.nextRun()
    await testbed.sink.ask({ do: 'begin', run, numberedBy: 'event' })
    const load = await testbed.publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts, run, pace })
    if (load.firstError !== undefined) throw new Error(`${load.refused} requests were refused: ${load.firstError}`)
    const counted = load.acceptedAtMs.reduce((sum, at, n) => sum + (at > 0 && isCounted(n) ? 1 : 0), 0)
    const arrivals = await testbed.sink.ask({ do: 'wait', arrivals: counted, repeats: 0, stallMs: STALL_MS })
    return { load, arrivals }
  })
  return { ...compareArrivals(result.load, result.arrivals, isCounted), ...cost }
}

function subtractStatements(
  after: ReadonlyMap<string, StatementCost>,
  before: ReadonlyMap<string, StatementCost>,
): StatementCost[] {
  return [...after].map(([id, { query, calls, totalMs }]) => {
    const earlier = before.get(id)
    return { query, calls: calls - (earlier?.calls ?? 0), totalMs: totalMs - (earlier?.totalMs ?? 0) }
  })
}
