import type { Clock } from '../../../src/base/clock.ts'

/** A clock that a test advances. Sleeps resolve at their time. */
export interface ManualClock extends Clock {
  /** Advances the time by `ms` and resolves the sleeps until then. */
  advance(ms: number): void
  /** Sets the time, also backwards, like a wrong clock of a machine. */
  set(ms: number): void
}

/** Starts at `startMs`; by default at a fixed instant, so that runs are repeatable. */
export function buildManualClock(startMs = Date.UTC(2026, 8, 11, 12)): ManualClock {
  let nowMs = startMs
  let sleepers: { wakeAtMs: number; wake: () => void }[] = []
  const wakeDue = () => {
    const due = sleepers.filter((sleeper) => sleeper.wakeAtMs <= nowMs)
    sleepers = sleepers.filter((sleeper) => sleeper.wakeAtMs > nowMs)
    for (const sleeper of due) sleeper.wake()
  }
  return {
    now: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const sleeper = { wakeAtMs: nowMs + ms, wake: resolve }
        sleepers.push(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers = sleepers.filter((item) => item !== sleeper)
          resolve()
        })
        wakeDue()
      }),
    advance: (ms) => {
      nowMs += ms
      wakeDue()
    },
    set: (ms) => {
      nowMs = ms
      wakeDue()
    },
  }
}
