import type { Clock } from './clock.ts'

/** Work in the background: `run` ends after `stop`. */
export interface Loop {
  run(): Promise<void>
  stop(): void
}

/** Work that is repeated. */
export interface Rounds {
  clock: Pick<Clock, 'sleep'>
  /** Pause after each round, in milliseconds. */
  periodMs: number
  /** Ends the rounds, also during a pause. */
  stop: AbortSignal
  work: () => Promise<unknown>
  /** Reports a round that failed; the next one comes all the same. */
  onError: (error: unknown) => void
}

/** Does work in rounds until `stop`. */
export async function runRounds({ clock, periodMs, stop, work, onError }: Rounds): Promise<void> {
  while (!stop.aborted) {
    await work().catch(onError)
    await clock.sleep(periodMs, stop)
  }
}
