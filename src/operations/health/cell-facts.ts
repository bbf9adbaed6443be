import { cacheFor } from '../../base/cached.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { type CellStatus, type CellUse, findStatus } from '../../carriage/cell/cell-status.ts'
import { withinAnswerLimit } from '../../postgres/cell/answer-limit.ts'
import type { Cells } from '../../postgres/cell/cells.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { FACTS_LIFETIME_MS, type WebhookOutFacts } from './webhook-out.ts'

/** How long a cell may be joining: its first copy of the reference rows ends within minutes. */
const JOINING_LIMIT_MS = 1_800_000

/** What is known of home and its cells, at most 5 s old. */
export interface CellFacts {
  status: CellStatus
  /** The work of each cell that answers, by name. */
  work: ReadonlyMap<string, WebhookOutFacts>
}

/** Reads the facts; undefined without cells. */
export type ReadCellFacts = () => Promise<CellFacts | undefined>

/** Builds the reader of a process with an event log. All cells are asked at once, by the pools of the process. */
export function buildCellFacts(deps: {
  findCells: () => Pick<Cells, 'get'>
  /** Home. */
  db: Database
  clock: Pick<Clock, 'now'>
  rest?: typeof systemClock.sleep
}): ReadCellFacts {
  const { findCells, db, clock, rest = systemClock.sleep } = deps
  return cacheFor(clock, FACTS_LIFETIME_MS, async () => {
    const now = new Date(clock.now())
    const work = new Map<string, WebhookOutFacts>()
    const use: CellUse = async ({ name }, read) => {
      const at = findCells().get(name)
      if (!at) throw new Error(`The cell ${name} is not open in this process.`)
      const reading = (async () => {
        work.set(name, await readWebhookOutFacts(at.database.db, now))
        return read(at.database.db)
      })()
      return withinAnswerLimit(reading, rest)
    }
    const status = await findStatus({ home: db, use, now, hasLog: true, joiningMs: JOINING_LIMIT_MS })
    return status && { status, work }
  })
}
