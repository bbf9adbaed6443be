/**
 * Where time comes from. Everything that decides takes a `Clock`, so tests move time by hand and no test sleeps.
 */
export interface Clock {
  /** The instant now. Milliseconds since the Unix epoch, UTC. */
  now(): number
  /**
   * Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects.
   * It waits for background rounds only; no decision depends on how long it really took.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The clock of the machine. */
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
