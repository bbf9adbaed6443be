import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import { type Loop, runRounds } from '../base/rounds.ts'
import type { WorkerLease } from './worker-lease.ts'

const RENEW_EVERY_MS = 1_000

/** Maximum age of a renewal whose view of the other workers counts as current. */
const FRESH_MS = 1_500

/** A lease renewed by its own timer, so that a worker stays alive while its statements wait. */
export interface KeptLease extends WorkerLease, Loop {}

/** Keeps a lease renewed. `renew` returns the last result while it is fresh; concurrent callers share one. */
export function keepRenewed(lease: WorkerLease, { clock, logger }: { clock: Clock; logger: Logger }): KeptLease {
  const stopping = new AbortController()
  let isRunning = false
  let renewing: Promise<string[]> | undefined
  let last: { gone: string[]; atMs: number } | undefined

  function renewNow(): Promise<string[]> {
    renewing ??= lease
      .renew()
      .then((gone) => {
        last = { gone, atMs: clock.now() }
        return gone
      })
      .finally(() => {
        renewing = undefined
      })
    return renewing
  }

  return {
    ...lease,
    renew: async () => {
      if (isRunning && last && Math.abs(clock.now() - last.atMs) < FRESH_MS) return last.gone
      return renewNow()
    },
    run: async () => {
      isRunning = true
      await runRounds({
        ...{ clock, periodMs: RENEW_EVERY_MS, stop: stopping.signal, work: renewNow },
        onError: (err) => logger.warn({ err }, 'lease not renewed: see docs/operations.md, database'),
      })
      isRunning = false
    },
    stop: () => stopping.abort(),
  }
}
