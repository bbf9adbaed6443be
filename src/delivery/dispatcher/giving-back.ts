import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Claim, DeliveryPolicy, Work } from '../policy.ts'

/** The wait after a fault of this process, doubled with each further one. */
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 30_000

const RETRY_MS = 1_000

const BATCH_SIZE = 500

export interface GivingBackDeps {
  policy: { queue: Pick<DeliveryPolicy<Work, Claim, unknown>['queue'], 'release'> }
  clock: Clock
  logger: Logger
  /** Runs for each attempt that was not made, for the metric. */
  onOwnFault?: (fault: OwnFault) => void
}

/** Releases the claims of attempts that this process could not make (docs/contract/delivery.md#whose-fault). */
export interface GivingBack {
  /** Releases a claim. An error that is not an `OwnFault` is a bug of the attempt; its claim is released too. */
  add(claim: Claim, error: unknown): void
  /** Whether this process pauses claims, because it lacks a resource that every attempt needs. */
  isPaused(): boolean
  /** Reports a made attempt: the next fault waits for the shortest time again. */
  noteAttempt(): void
  /** Resolves when no release is pending; undefined when none is. */
  settled(): Promise<void> | undefined
}

/** Builds it. `onDone` gets the released claims. */
export function buildGivingBack(deps: GivingBackDeps, onDone: (claims: readonly Claim[]) => void): GivingBack {
  const { clock, logger } = deps
  let waiting: Claim[] = []
  let waitMs = FIRST_WAIT_MS
  /** Faults until then count with the previous one: they do not lengthen the wait. */
  let waitUntilMs = Number.NEGATIVE_INFINITY
  let pausedUntilMs = Number.NEGATIVE_INFINITY
  let giving: Promise<void> | undefined

  async function giveAll(): Promise<void> {
    // Claims that fail in one turn of the event loop are released together.
    await Promise.resolve()
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_SIZE)
      try {
        const nowMs = clock.now()
        await deps.policy.queue.release(batch, new Date(nowMs), new Date(Math.max(nowMs, waitUntilMs)))
        waiting = waiting.slice(batch.length)
        onDone(batch)
      } catch (error) {
        logger.error(
          { err: error, attempts: batch.length },
          'claims not given back yet: see docs/operations.md, database',
        )
        await clock.sleep(RETRY_MS)
      }
    }
    giving = undefined
  }

  function note(error: unknown): void {
    const nowMs = clock.now()
    const isNew = nowMs >= waitUntilMs
    if (isNew) {
      waitUntilMs = nowMs + waitMs
      const line = { err: error, wait_ms: waitMs, ...(error instanceof OwnFault && { code: error.code }) }
      logger.error(line, 'attempts not made for a fault of this process: see docs/operations.md, own faults')
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)
    }
    if (error instanceof OwnFault && error.isOfProcess) pausedUntilMs = waitUntilMs
  }

  return {
    add: (claim, error) => {
      note(error)
      if (error instanceof OwnFault) deps.onOwnFault?.(error)
      waiting.push({ id: claim.id, fence: claim.fence })
      giving ??= giveAll()
    },
    isPaused: () => clock.now() < pausedUntilMs,
    noteAttempt: () => {
      if (clock.now() >= waitUntilMs) waitMs = FIRST_WAIT_MS
    },
    settled: () => giving,
  }
}
