import { type EventLog, LogError } from '../log/log.ts'
import type { IntakeState } from './intake.store.ts'

/**
 * Time for which a log must end before the position to count as `ahead`: a server may have given out messages that its
 * leader, which is asked for the end, has not applied yet.
 */
const AHEAD_CONFIRMED_MS = 5_000

/** The suspicion that a log, which ended before the position of an intake, has lost its end. */
export interface Suspicion {
  /** Begins it, or says whether it is certain by now. */
  isConfirmed(): boolean
  /** Ends it. */
  end(): void
  /**
   * Ends it when the log has the same message at the position as before; does nothing without one. Throws the `LogError`
   * `ahead`, and is certain when others have appended in place of what is lost.
   */
  check(log: EventLog, state: IntakeState): Promise<void>
}

/** Builds it. */
export function buildSuspicion(monotonicMs: () => number): Suspicion {
  let sinceMs: number | undefined
  return {
    isConfirmed: () => {
      sinceMs ??= monotonicMs()
      return monotonicMs() - sinceMs >= AHEAD_CONFIRMED_MS
    },
    end: () => {
      sinceMs = undefined
    },
    check: async (log, { incarnation, sequence, storedAt }) => {
      if (sinceMs === undefined || incarnation === null) return
      const [last] = await log.read({ from: { incarnation, sequence: sequence - 1 }, limit: 1 })
      const isSame = last?.storedAt.getTime() === storedAt?.getTime()
      if (last && !isSame) sinceMs = Number.NEGATIVE_INFINITY
      if (!last || !isSame) throw new LogError('ahead', `The log lost what it had at the position ${sequence}.`)
      sinceMs = undefined
    },
  }
}
