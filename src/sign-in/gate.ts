import type { Clock } from '../clock.ts'
import { Problem } from '../http/problem.ts'
import { buildSemaphore } from '../semaphore.ts'

/** Runs work within a limit of concurrency. */
export interface Gate {
  <Result>(work: () => Promise<Result>): Promise<Result>
  /**
   * Takes a place for a request that will bring one piece of work, and returns what frees it. Throws 503 `overloaded` when
   * there are as many such requests as pieces of work may run and wait. For the start of a request, before it costs
   * a statement.
   */
  takePlace(): () => void
}

/**
 * Builds a gate that runs up to `atOnce` pieces of work concurrently and queues up to `queueLimit` others. Work that finds
 * the queue full, or has waited `waitMs`, is refused with 503 `overloaded`, so that a burst of sign-ins does not exhaust
 * memory or connections, or starve other requests.
 */
export function buildGate(options: {
  atOnce: number
  queueLimit: number
  waitMs: number
  clock: Pick<Clock, 'sleep'>
}): Gate {
  const { atOnce, queueLimit, waitMs, clock } = options
  const slots = buildSemaphore(atOnce)
  let places = atOnce + queueLimit

  async function enter(): Promise<void> {
    if (slots.tryTake()) return
    if (slots.waiting() >= queueLimit) throw buildOverloaded()
    const patience = new AbortController()
    const isMine = await slots.takeBefore(() => clock.sleep(waitMs, patience.signal))
    patience.abort()
    if (!isMine) throw buildOverloaded()
  }

  function takePlace(): () => void {
    if (places === 0) throw buildOverloaded()
    places -= 1
    let isTaken = true
    return () => {
      if (isTaken) places += 1
      isTaken = false
    }
  }

  async function run<Result>(work: () => Promise<Result>): Promise<Result> {
    await enter()
    try {
      return await work()
    } finally {
      slots.release()
    }
  }

  return Object.assign(run, { takePlace })
}

function buildOverloaded(): Problem {
  return new Problem('overloaded', 'Too many passwords are being checked. Try again in a few seconds.', {
    headers: { 'retry-after': '5' },
  })
}
