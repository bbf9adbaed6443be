/**
 * The source of time. Code that decides by time takes a `Clock`, so tests set the time and do not sleep.
 */
export interface Clock {
  /** The instant now. Milliseconds since the Unix epoch, UTC. */
  now(): number
  /**
   * Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects.
   * For pauses between background rounds; no decision depends on the real duration.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Kept from before `adoptClock`. */
const readMachine = Date.now

/**
 * The clock of the machine, or the clock that the process has adopted. The service decides by the database's clock
 * (`followDatabaseClock`).
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done, { once: true })
    }),
}

/** The clock of the machine, independent of an adopted clock. */
export const machineClock: Clock = { now: () => readMachine(), sleep: systemClock.sleep }

/**
 * Makes `Date.now` this clock for the whole process: the OAuth provider, the sign-in library and the log read the time
 * there, and a process has one. Returns the function that restores it.
 */
export function adoptClock(clock: Pick<Clock, 'now'>): () => void {
  const now = () => clock.now()
  Date.now = now
  return () => {
    if (Date.now === now) Date.now = readMachine
  }
}

/** Monotonic milliseconds of this process: for durations, which a step of any clock must not change. */
export const readMonotonicMs = (): number => performance.now()
