import type { AccountId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { EventLog } from '../log/log.ts'
import { perform } from './effects.ts'
import {
  claimFence,
  endMove,
  findMove,
  type MoveRecord,
  openFence,
  releaseMove,
  renewMove,
  takeMove,
  writeStep,
} from './move.store.ts'
import { canGoBack, findNextStep, type MoveEffect, type MoveStep, type Place, planStep } from './move-plan.ts'
import { MoveSupersededError, type RunningMove } from './running-move.ts'

const PAUSE_MS = 200

/** Rows of a page: a few MB at most. */
const PAGE_ROWS = 1_000

export interface MoverDeps {
  /** The database of a place; rejects when it cannot be reached. */
  open: (place: Place) => Promise<Database>
  /** Connects to the event log: needed where it is on, from or to a cell. Rejects with a `LogError`. */
  openLog?: () => Promise<EventLog>
  runner: string
  sleep: (ms: number) => Promise<unknown>
  /** Records the end, in its transaction. */
  record?: (tx: Database, end: { move: MoveRecord; kind: 'moved' | 'back' }) => Promise<void>
  onProgress?: (progress: MoveProgress) => void
  pageRows?: number
  /** Runs before each effect: for tests, which end the run there. */
  beforeEffect?: (effect: MoveEffect, step: MoveStep) => Promise<void> | void
}

export interface MoveProgress {
  step: MoveStep
  /** The effect that is being done, and whether it waits. */
  effect: MoveEffect['kind']
  waits: boolean
  /** Rows that this run has copied, of all tables. */
  rows: number
}

export type MoveEnd =
  | { kind: 'moved' | 'back'; rows: number; reason: string | null }
  | { kind: 'taken' | 'none'; rows?: never; reason?: never }

/** The reason of a move that went back by itself. */
const DRAIN_LIMIT = 'drain_limit'

/** Runs the move of an account to its end, by any process in turn. `taken`: another has it; `none`: there is none. */
export async function runMove(deps: MoverDeps, account: AccountId): Promise<MoveEnd> {
  const { open, runner } = deps
  const home = await open(null)
  const taken = await takeMove(home, { account, runner })
  if (!taken) {
    return { kind: (await findMove(home, { account })) ? 'taken' : 'none' }
  }
  const places = [...new Set<Place>([null, taken.source, taken.target])]
  try {
    const databases = new Map(await Promise.all(places.map(async (place) => [place, await open(place)] as const)))
    for (const database of databases.values()) await openFence(database)
    for (const place of places)
      if (!(await claimFence(databases.get(place) as Database, taken))) throw new MoveSupersededError()
    return await runSteps(deps, { taken, databases })
  } catch (error) {
    // Another process may go on at once.
    await releaseMove(home, taken).catch(() => {})
    throw error
  }
}

async function runSteps(
  deps: MoverDeps,
  { taken, databases }: { taken: MoveRecord; databases: ReadonlyMap<Place, Database> },
): Promise<MoveEnd> {
  let log: EventLog | undefined
  const openOnce = async () => {
    if (!deps.openLog) throw new Error('this move needs the event log')
    log ??= await deps.openLog()
    return log
  }
  try {
    return await runStepsWith(deps, { taken, databases, log: openOnce })
  } finally {
    await log?.close()
  }
}

async function runStepsWith(
  deps: MoverDeps,
  given: { taken: MoveRecord; databases: ReadonlyMap<Place, Database>; log: RunningMove['log'] },
): Promise<MoveEnd> {
  const { taken, databases, log } = given
  const home = databases.get(null) as Database
  let rows = 0
  const running: RunningMove = {
    log,
    move: taken,
    at: (place) => databases.get(place) as Database,
    pageRows: deps.pageRows ?? PAGE_ROWS,
    closedAt: undefined,
    onCopied: (_table, count) => {
      rows += count
      report('copy', false)
    },
  }
  const report = (effect: MoveEffect['kind'], waits: boolean) =>
    deps.onProgress?.({ step: running.move.step, effect, waits, rows })
  for (;;) {
    running.move = await renew(home, running.move)
    const outcome = await runStep(deps, running, report)
    const { step, reason } = running.move
    if (outcome === 'ended') return { kind: step === 'back' ? 'back' : 'moved', rows, reason }
    if (outcome === 'done') await goOn(home, running.move, { to: findNextStep(step) })
    else if (outcome === 'back') await goOn(home, running.move, { to: 'back', reason: reason ?? DRAIN_LIMIT })
    else await deps.sleep(PAUSE_MS)
  }
}

async function renew(home: Database, move: MoveRecord): Promise<MoveRecord> {
  const renewed = await renewMove(home, move)
  if (!renewed) throw new MoveSupersededError()
  return renewed
}

async function goOn(
  home: Database,
  { account, epoch, step }: MoveRecord,
  { to, reason }: { to: MoveStep | undefined; reason?: string },
): Promise<void> {
  if (!to) throw new Error(`the step ${step} has no next one`)
  const change = { account, epoch, from: step, to, ...(reason !== undefined && { reason }) }
  if (!(await writeStep(home, change))) throw new MoveSupersededError()
}

async function end({ record }: MoverDeps, { move, at }: RunningMove): Promise<void> {
  await inTransaction(at(null), async (tx) => {
    if (!(await endMove(tx, move))) throw new MoveSupersededError()
    await record?.(tx, { move, kind: move.step === 'back' ? 'back' : 'moved' })
  })
}

/** Does the effects of a step. `waits`: one of them has to wait, and the step begins anew. */
async function runStep(
  deps: MoverDeps,
  running: RunningMove,
  report: (effect: MoveEffect['kind'], waits: boolean) => void,
): Promise<'done' | 'waits' | 'back' | 'ended'> {
  for (const effect of planStep(running.move)) {
    running.move = await renew(running.at(null), running.move)
    const { step, reason, isLate } = running.move
    if (canGoBack(step) && reason !== null) return 'back'
    report(effect.kind, false)
    await deps.beforeEffect?.(effect, step)
    if (effect.kind === 'end') {
      await end(deps, running)
      return 'ended'
    }
    if (await perform(running, effect)) continue
    report(effect.kind, true)
    return canGoBack(step) && isLate ? 'back' : 'waits'
  }
  return 'done'
}
