/** The source of time of all code that decides by time, so that tests set it. */
export interface Clock {
  /** The instant now. Milliseconds since the Unix epoch, UTC. */
  now(): number
  /** Resolves after `ms` milliseconds, or at `signal`. For pauses that decide nothing; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Kept from before `adoptClock`. */
const readMachine = Date.now

/** The clock that the process has adopted, else the machine's. The service uses `followDatabaseClock`. */
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

/** Makes `Date.now` this clock for the process: its libraries read the time there. Returns what restores it. */
export function adoptClock(clock: Pick<Clock, 'now'>): () => void {
  const now = () => clock.now()
  Date.now = now
  return () => {
    if (Date.now === now) Date.now = readMachine
  }
}

/** Monotonic milliseconds of this process: for durations, which a step of any clock must not change. */
export const readMonotonicMs = (): number => performance.now()
