/** The signals that end the service. */
export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Time within which repeated key presses count as one. */
const REPEAT_MS = 1_000

/** Meanings of the signals of a process, in the order in which they come. */
export interface StopSignals {
  /**
   * `stop`: end in order. `exit`: end at once, for a SIGINT over a second after the first signal; other processes take
   * over the claims of this one when their leases expire.
   */
  take(signal: (typeof STOP_SIGNALS)[number]): 'stop' | 'exit'
  /** A SIGINT of the launcher is never the second: it may be the same Ctrl-C, and late. */
  takeOfLauncher(): 'stop'
}

/** Builds the meaning of the signals, by a monotonic clock in ms. */
export function buildStopSignals(monotonicMs: () => number): StopSignals {
  let firstAtMs: number | undefined
  const note = () => {
    const nowMs = monotonicMs()
    firstAtMs ??= nowMs
    return nowMs - firstAtMs
  }
  return {
    take: (signal) => (note() >= REPEAT_MS && signal === 'SIGINT' ? 'exit' : 'stop'),
    takeOfLauncher: () => {
      note()
      return 'stop'
    },
  }
}
