import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '../../base/clock.ts'
import type { PlaceVisitor } from '../../http/pipeline/pipeline-deps.ts'
import { Problem } from '../../http/problem/problem.ts'
import { type Admission, buildShares, type LeavePlace } from './admission-shares.ts'

/** Runs work within a limit of concurrency. */
export interface HashingSemaphore {
  <Result>(work: () => Promise<Result>): Promise<Result>
  /**
   * Takes a place for a request with one piece of work, and returns its release. Throws 503 `overloaded` without a
   * place for this visitor: their number is that of running and waiting work, shared by networks (`buildShares`). For
   * the start of a request, before it costs a statement.
   */
  admit(visitor: PlaceVisitor): LeavePlace
  /**
   * Turns the place of this request into a stranger's, if it was taken for a browser whose sign-in was before
   * `endedAt`, the last revocation of the user's access. Throws 503 `overloaded` without one for strangers. Does
   * nothing without a place.
   */
  judgePlace(endedAt: Date | null): void
}

/** The place of a request, and who has it. */
interface AdmittedRequest {
  place: Admission
  visitor: PlaceVisitor
}

interface Waiting {
  take: () => void
  place: Admission | undefined
}

/**
 * Builds a semaphore that runs up to `atOnce` pieces of work concurrently and queues up to `queueLimit` others. Work that finds
 * the queue full, or has waited `waitMs`, is refused with 503 `overloaded`, so that a burst of sign-ins does not exhaust
 * memory or connections, or starve other requests.
 */
export function buildHashingSemaphore(options: {
  atOnce: number
  queueLimit: number
  waitMs: number
  clock: Pick<Clock, 'now' | 'sleep'>
}): HashingSemaphore {
  const { atOnce, queueLimit, waitMs, clock } = options
  const waiting: Waiting[] = []
  /** The place of the request that the work is for. */
  const placeOfRequest = new AsyncLocalStorage<AdmittedRequest>()
  let running = 0
  const shares = buildShares(atOnce + queueLimit, clock)

  async function enter(place: Admission | undefined): Promise<void> {
    if (place?.isGone) throw buildOverloaded()
    if (running < atOnce) {
      running += 1
      return
    }
    if (waiting.length >= queueLimit) throw buildOverloaded()
    const turn = Promise.withResolvers<'turn' | 'gone'>()
    const own = { take: () => turn.resolve('turn'), place }
    waiting.push(own)
    if (place) place.onGone = () => turn.resolve('gone')
    const patience = new AbortController()
    const first = await Promise.race([turn.promise, clock.sleep(waitMs, patience.signal).then(() => 'late' as const)])
    patience.abort()
    if (first === 'turn') return
    const at = waiting.indexOf(own)
    // A slot was assigned at the same moment: pass it on.
    if (at < 0) leave()
    else waiting.splice(at, 1)
    throw buildOverloaded()
  }

  function admit(visitor: PlaceVisitor): LeavePlace {
    const place = shares.take(visitor)
    if (!place) throw buildOverloaded()
    const taken = { place, visitor }
    // For the rest of this request: its work asks for the place in `run`.
    placeOfRequest.enterWith(taken)
    return (isRefused) => taken.place.leave(isRefused)
  }

  function judgePlace(endedAt: Date | null): void {
    const taken = placeOfRequest.getStore()
    const { knownBrowser, address } = taken?.visitor ?? {}
    if (!taken || !address || !knownBrowser || endedAt === null || endedAt.getTime() <= knownBrowser.since) return
    taken.place.leave(false)
    taken.visitor = { address, knownBrowser: undefined }
    const place = shares.take(taken.visitor)
    if (!place) throw buildOverloaded()
    taken.place = place
  }

  function leave(): void {
    const [next] = waiting.splice(findNext(waiting), 1)
    // The next in the queue takes over the slot, so `running` is unchanged.
    if (next) next.take()
    else running -= 1
  }

  async function run<Result>(work: () => Promise<Result>): Promise<Result> {
    const place = placeOfRequest.getStore()?.place
    await enter(place)
    if (place) place.isRunning = true
    try {
      return await work()
    } finally {
      if (place) place.isRunning = false
      leave()
    }
  }

  return Object.assign(run, { admit, judgePlace })
}

/** The queued work of the network with the fewest points; for equal ones the first. */
function findNext(waiting: readonly Waiting[]): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY]
  for (const [at, { place }] of waiting.entries()) {
    const points = place?.readPoints() ?? 0
    if (points < least) [best, least] = [at, points]
  }
  return best
}

function buildOverloaded(): Problem {
  return new Problem('overloaded', 'Too many passwords are being checked. Try again in a few seconds.', {
    headers: { 'retry-after': '5' },
  })
}
