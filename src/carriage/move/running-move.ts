import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { EventLog } from '../log/log.ts'
import { enterMove, type MoveRecord } from './move.store.ts'
import type { FenceState, Place } from './move-plan.ts'

/** Another process has the move. */
export class MoveSupersededError extends Error {
  constructor() {
    super('Another process has taken the move over.')
    this.name = 'MoveSupersededError'
  }
}

/** A move under way in this process. */
export interface RunningMove {
  move: MoveRecord
  at: (place: Place) => Database
  /** The event log, which is opened once. Rejects with a `LogError`. */
  log: () => Promise<EventLog>
  pageRows: number
  /** When this run closed the fence, by the clock of the source; undefined before. */
  closedAt: string | undefined
  onCopied: (table: string, rows: number) => void
}

/** Runs `work` in a transaction of the move: its rows pass the fence, and a superseded runner is refused. */
export function enter<Result>(
  { move, at }: RunningMove,
  place: Place,
  work: (tx: Database, state: FenceState) => Promise<Result>,
): Promise<Result> {
  return inTransaction(at(place), async (tx) => {
    const state = await enterMove(tx, move)
    if (!state) throw new MoveSupersededError()
    return work(tx, state)
  })
}
