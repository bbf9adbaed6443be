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
