import { EVENT_TYPE } from '../api-case.ts'
import { type StatementCost, subtractUsage, type Usage } from '../meter.ts'
import { monotonicMs } from '../monotonic.ts'
import type { Pace } from '../publisher.ts'
import { compareArrivals, type DeliveryOutcome } from './delivery-outcome.ts'
import type { Stage } from './stage.ts'

/** A load on a stage. */
export interface StageLoad {
  /** Event number n is of account n, in turn. */
  accounts: readonly string[]
  pace: Pace
  /** Which events must arrive and make the figures; all when it is left out. */
  isCounted?: (n: number) => boolean
}

/** What a load came to and what it took, until the service was idle again. */
export interface LoadFigures extends DeliveryOutcome {
  usage: Usage
  /** From the first request until the service was idle. */
  wallMs: number
  /** What ran in the service's database meanwhile. */
  statements: StatementCost[]
  /** Why the first request was refused, when one was. */
  firstError: string | undefined
}

/** Without an arrival for so long, the rest counts as lost. */
const STALL_MS = 15_000

/** Publishes a load, waits for its arrivals and until the service is idle, and measures. Throws when all was refused. */
export async function runLoad(
  stage: Stage,
  { accounts, pace, isCounted = () => true }: StageLoad,
): Promise<LoadFigures> {
  const { ground, meter, origin, jwt } = stage
  const run = ground.nextRun()
  await meter.waitForQuiet(stage)
  await ground.sink.ask({ do: 'begin', run, numberedBy: 'event' })
  const statementsBefore = await meter.listStatements(stage)
  const before = await meter.read(stage)
  const startedAt = monotonicMs()
  const load = await ground.publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts, run, pace })
  if (load.accepted === 0) throw new Error(`no event was accepted: ${load.firstError}`)
  const counted = load.acceptedAtMs.reduce((sum, at, n) => sum + (at > 0 && isCounted(n) ? 1 : 0), 0)
  const arrivals = await ground.sink.ask({ do: 'wait', arrivals: counted, repeats: 0, stallMs: STALL_MS })
  await meter.waitForQuiet(stage)
  const after = await meter.read(stage)
  return {
    ...compareArrivals(load, arrivals, isCounted),
    usage: subtractUsage(after, before),
    wallMs: monotonicMs() - startedAt,
    statements: subtractStatements(await meter.listStatements(stage), statementsBefore),
    firstError: load.firstError,
  }
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
