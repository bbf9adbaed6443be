import { buildMutex } from '../../base/semaphore.ts'
import type { Claim, ClaimRequest, Work } from '../policy.ts'
import { buildAttempts } from './attempts.ts'
import type { Dispatcher, DispatcherDeps } from './dispatcher-parts.ts'
import { buildLanes } from './lanes.ts'
import { buildRecovery, type Recovery } from './recovery.ts'
import { buildWaiting, POLL_MS } from './waiting.ts'

export type { Dispatcher, DispatcherDeps } from './dispatcher-parts.ts'

/**
 * Builds the dispatcher of a policy. Its states:
 *
 * ```
 *   built --run--> joining     registers its worker; claims nothing (`recovery.ts`)
 *   joining -----> claiming    it is registered, and other workers have had the time to see it
 *   claiming ----> claiming    rows were claimed: more may be due
 *   claiming ----> waiting     nothing was claimed, or no slot is free (`waiting.ts`)
 *   waiting -----> claiming    a row is due, a notification, room, or the poll after a second
 *   claiming ----> joining     it had to wait at the latch: other workers may have forgotten it
 *   any --stop---> stopped     claims nothing; attempts end or are interrupted, and all is recorded (`attempts.ts`)
 * ```
 *
 * Those of a claim, each of which ends once by its fence:
 *
 * ```
 *   claimed -> in flight -> ended -> recorded     by the acknowledger, in batches
 *   claimed -> in flight -> given back            the attempt was not made for a fault of this process
 *   claimed -> given back                         the process stops
 *   leaked  -> recorded as interrupted            the answer of the claiming statement was lost, or its worker is gone
 * ```
 */
export function buildDispatcher<Claimed extends Work, Ended extends Claim, Settled>(
  deps: DispatcherDeps<Claimed, Ended, Settled>,
): Dispatcher {
  const { policy, clock, logger, lease } = deps
  const { queue } = policy
  const lanes = buildLanes(policy.concurrency)
  const stopping = new AbortController()
  const mutex = buildMutex()
  let isRunning = false
  const recovery: Recovery = buildRecovery({ ...deps, mutex }, () => attempts.heldClaims())
  const waiting = buildWaiting({ clock, lanes, nextDueAt: (room) => queue.nextDueAt(room) })
  const attempts = buildAttempts({ ...deps, lanes, onRefused: recovery.expectLeak, onEnded: waiting.noteEnd })

  const release = (claims: readonly Claim[]) => queue.release(claims, new Date(clock.now()))

  function measure(): ClaimRequest {
    const nowMs = clock.now()
    const { fastSlots, slowSlots, slowGroups, lateGroups, byGroup } = lanes.measure(nowMs)
    return {
      workerId: deps.workerId,
      now: new Date(nowMs),
      fastSlots: attempts.isPaused() ? 0 : fastSlots,
      slowSlots: attempts.isPaused() ? 0 : slowSlots,
      slowGroups,
      lateGroups,
      inFlight: byGroup,
      perGroup: policy.perGroup,
      hasPeers: recovery.mayOthersHold(),
    }
  }

  async function claim(): Promise<Claimed[]> {
    // Nothing is posted while the event queue is off, including rows recorded before.
    if (!deps.isEnabled || !lease.isTrusted()) return []
    const request = measure()
    if (request.fastSlots + request.slowSlots === 0) return []
    try {
      return await queue.claim(request)
    } catch (error) {
      recovery.expectLeak()
      throw error
    }
  }

  /** Claims due rows and starts their attempts. Returns their number. */
  async function round(): Promise<number> {
    await mutex.take()
    try {
      const claimed = await claim()
      if (stopping.signal.aborted) {
        await release(claimed)
        return 0
      }
      attempts.start(claimed)
      return claimed.length
    } finally {
      mutex.release()
    }
  }

  async function drain(): Promise<number> {
    let total = 0
    for (;;) {
      await recovery.run()
      const claimed = await round()
      total += claimed
      await attempts.allRecorded()
      if (claimed === 0) return total
    }
  }

  async function run(): Promise<void> {
    await recovery.join(stopping.signal)
    isRunning = true
    while (!stopping.signal.aborted) {
      try {
        if (await deps.latch?.(stopping.signal)) await recovery.join(stopping.signal)
        await recovery.runIfDue()
        const claimed = waiting.beginRound() ? await round() : 0
        if (claimed === 0 && !stopping.signal.aborted) await waiting.wait(measure())
      } catch (error) {
        logger.error({ err: error }, 'dispatcher round failed: see docs/operations.md, database')
        await clock.sleep(POLL_MS, stopping.signal)
      }
    }
  }

  return {
    policy,
    mutex,
    notify: waiting.notify,
    inFlight: attempts.inFlight,
    measureRoom: () => {
      const request = measure()
      const mayClaim = isRunning && deps.isEnabled && lease.isTrusted() && !stopping.signal.aborted
      return mayClaim ? request : { ...request, fastSlots: 0, slowSlots: 0 }
    },
    hasRoom: () => lanes.hasRoom(clock.now()),
    accept: async (rows) => {
      const works = rows.map((row) => policy.readWork(row))
      if (stopping.signal.aborted) await release(works)
      else attempts.start(works)
    },
    expectLeak: recovery.expectLeak,
    mayLeak: recovery.mayLeak,
    drain,
    run,
    stop: async () => {
      stopping.abort()
      waiting.notify()
      await attempts.stop()
    },
  }
}
