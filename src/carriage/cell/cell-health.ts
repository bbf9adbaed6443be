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
    /** Seconds until its disk is full, at the growth of the last days; null when it will not be, or where that is not known. */
    disk_full_s: number | null
  }[]
  /** Moves of accounts that no process runs. */
  interrupted_moves: number
  /** Remedy; null while nothing is wrong. */
  remedy: string | null
}

/** Below this the health names the disk of a cell. */
const DISK_FULL_S = 2 * 86_400

/** Describes the cells; `fullInDays` says of a cell when its disk is full. Pure. */
export function describeCellHealth(
  status: CellStatus,
  fullInDays: (cell: string) => number | null | undefined,
): CellHealthFacts {
  const { databases, remedies, interrupted } = status
  const cells = databases
    .filter(({ state }) => state !== 'home')
    .map(({ name, state, is_reachable, outbox, reference }) => {
      const days = fullInDays(name) ?? null
      return {
        ...{ name, state, is_reachable },
        oldest_waiting_s: outbox?.oldest_waiting_s ?? null,
        reference_lag_bytes: reference?.lag_bytes ?? null,
        disk_full_s: days === null ? null : Math.round(days * 86_400),
      }
    })
  const isDiskFull = cells.some(({ disk_full_s: seconds }) => seconds !== null && seconds < DISK_FULL_S)
  const todo = [
    ...(remedies.length > 0
      ? ['Run signalbox cell status, and do what it says: see docs/operations/cells.md, status.']
      : []),
    ...(isDiskFull ? ['Give the cell a larger disk: see docs/operations.md, size and growth.'] : []),
  ]
  return { cells, interrupted_moves: interrupted, remedy: todo.length > 0 ? todo.join(' ') : null }
}

/** `degraded` while there is something to do (docs/operations/cells.md#status). Pure. */
export function decideCellHealth(facts: CellHealthFacts): 'operational' | 'degraded' {
  return facts.remedy === null ? 'operational' : 'degraded'
}
