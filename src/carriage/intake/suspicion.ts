import { checkFingerprint, checkPosition, type EventLog, fingerprintOf } from '../log/log.ts'
import type { IntakeState } from './intake.store.ts'

/**
 * Time for which a log must end before the position to count as `ahead`: a server may have given out messages that its
 * leader, which is asked for the end, has not applied yet.
 */
const AHEAD_CONFIRMED_MS = 5_000

/** Interval of a comparison without a reason: a log restored from a copy keeps the connections of its clients. */
const CHECK_EVERY_MS = 10_000

/** The suspicion that a log has lost its end, and others may have appended in its place. */
export interface Suspicion {
  /** Begins it, or says whether it is certain by now. */
  isConfirmed(): boolean
  /** Ends it. */
  end(): void
  /**
   * Compares the message at the position with the one that was there, where there is a suspicion, the connection is new, or
   * some seconds have passed; ends the suspicion when it is the same. Throws the `LogError` `ahead` when there is none,
   * `replaced` when there is another one, and those of `checkPosition`.
   */
  check(log: EventLog, state: IntakeState): Promise<void>
}

/** Builds it. */
export function buildSuspicion(monotonicMs: () => number): Suspicion {
  let sinceMs: number | undefined
  let checked: { log: EventLog; reconnects: number; atMs: number } | undefined

  function isDue(log: EventLog): boolean {
    if (sinceMs !== undefined || checked?.log !== log) return true
    return checked.reconnects !== log.countReconnects() || monotonicMs() - checked.atMs >= CHECK_EVERY_MS
  }

  return {
    isConfirmed: () => {
      sinceMs ??= monotonicMs()
      return monotonicMs() - sinceMs >= AHEAD_CONFIRMED_MS
    },
    end: () => {
      sinceMs = undefined
    },
    check: async (log, state) => {
      if (!isDue(log)) return
      // A connection that is made again meanwhile is another one.
      const now = { log, reconnects: log.countReconnects(), atMs: monotonicMs() }
      if (state.readSince === null) await comparePosition(log, state)
      checked = now
      sinceMs = undefined
    },
  }
}

async function comparePosition(log: EventLog, { incarnation, sequence, fingerprint }: IntakeState): Promise<void> {
  if (incarnation === null) return
  const found = fingerprint === null ? undefined : await log.readAt(sequence)
  if (found && fingerprintOf(found) === fingerprint) return
  const state = await log.readState()
  checkPosition({ incarnation, sequence }, state)
  if (fingerprint !== null) checkFingerprint(found, { sequence, fingerprint }, state)
}
