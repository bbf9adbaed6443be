import type { CellStatus, DatabaseStatus } from './cell-status.ts'

/** Facts of the cells for the health routes, which are public: no account is named. */
export interface CellHealthFacts {
  cells: {
    name: string
    state: DatabaseStatus['state']
    is_reachable: boolean
    /** Age of the oldest event of the cell that waits for the event log; null for a cell that is away. */
    oldest_waiting_s: number | null
    /** Bytes of home's log of changes that the cell has not confirmed; null without a slot. */
    reference_lag_bytes: number | null
  }[]
  /** Moves of accounts that no process runs. */
  interrupted_moves: number
  /** Remedy; null while nothing is wrong. */
  remedy: string | null
}

/** Describes the cells. Pure. */
export function describeCellHealth(status: CellStatus): CellHealthFacts {
  const { databases, remedies, interrupted } = status
  return {
    cells: databases
      .filter(({ state }) => state !== 'home')
      .map(({ name, state, is_reachable, outbox, reference }) => ({
        ...{ name, state, is_reachable },
        oldest_waiting_s: outbox?.oldest_waiting_s ?? null,
        reference_lag_bytes: reference?.lag_bytes ?? null,
      })),
    interrupted_moves: interrupted,
    remedy:
      remedies.length > 0
        ? 'Run signalbox cell status, and do what it says: see docs/operations/cells.md, status.'
        : null,
  }
}

/** `degraded` while there is something to do (docs/operations/cells.md#status). Pure. */
export function decideCellHealth(facts: CellHealthFacts): 'operational' | 'degraded' {
  return facts.remedy === null ? 'operational' : 'degraded'
}
