import type { Clock } from '../clock.ts'
import { Problem } from '../http/problem.ts'

/** Runs work when there is room for it. */
export type Gate = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Builds a gate that lets `atOnce` pieces of work run at once; others wait in order. Work that has waited `waitMs` is
 * refused with 503 `overloaded`, so that a storm of sign-ins neither fills the memory nor starves other requests.
 */
export function buildGate(options: { atOnce: number; waitMs: number; clock: Pick<Clock, 'sleep'> }): Gate {
  const { atOnce, waitMs, clock } = options
  const waiting: (() => void)[] = []
  let running = 0

  async function enter(): Promise<void> {
    if (running < atOnce) {
      running += 1
      return
    }
    const turn = Promise.withResolvers<'turn'>()
    const take = () => turn.resolve('turn')
    waiting.push(take)
    const patience = new AbortController()
    const first = await Promise.race([turn.promise, clock.sleep(waitMs, patience.signal).then(() => 'late' as const)])
    patience.abort()
    if (first === 'turn') return
    const at = waiting.indexOf(take)
    // Not waiting any more: the turn came in the same moment, and is passed on.
    if (at < 0) leave()
    else waiting.splice(at, 1)
    throw new Problem('overloaded', 'Too many passwords are being checked. Try again in a few seconds.', {
      headers: { 'retry-after': '5' },
    })
  }

  function leave(): void {
    const next = waiting.shift()
    // The place goes over to the next one: `running` stays.
    if (next) next()
    else running -= 1
  }

  return async (work) => {
    await enter()
    try {
      return await work()
    } finally {
      leave()
    }
  }
}
