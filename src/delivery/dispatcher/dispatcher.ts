import { buildMutex } from '../../base/semaphore.ts'
import { type Claim, type ClaimRequest, nameClaim, type Work } from '../policy.ts'
import { JOIN_WAIT_MS } from '../worker-lease.ts'
import { buildAcknowledger } from './acknowledger.ts'
import type { Dispatcher, DispatcherDeps } from './dispatcher-parts.ts'
import { buildGivingBack } from './giving-back.ts'
import { buildLanes, LATE_AFTER_MS, LOOK_MS } from './lanes.ts'
import { buildRecovery } from './recovery.ts'

/** How long the dispatcher sleeps at most when nothing notifies it. */
export const POLL_MS = 1_000

/** How long attempts in flight may go on once the process is asked to stop. */
const STOP_GRACE_MS = 6_000

export type { Dispatcher, DispatcherDeps } from './dispatcher-parts.ts'

/** Builds the dispatcher of a policy. */
export function buildDispatcher<Claimed extends Work, Ended extends Claim, Settled>(
  deps: DispatcherDeps<Claimed, Ended, Settled>,
): Dispatcher {
  const { policy, clock, logger, lease } = deps
  const { queue } = policy
  const lanes = buildLanes(policy.concurrency)
  const [stopping, interrupting] = [new AbortController(), new AbortController()]
  const running = new Set<Promise<void>>()
  const turn = buildMutex()
  let isRunning = false
  let notified = Promise.withResolvers<void>()

  const notify = () => notified.resolve()
  /** Claims that this process answers for: in flight, or waiting to be recorded. */
  const held = new Set<string>()
  const letGo = (done: readonly Claim[]) => {
    for (const one of done) held.delete(nameClaim(one))
  }
  const recovery = buildRecovery(deps, (claim) => held.has(claim))
  const acknowledger = buildAcknowledger({ ...deps, onRefused: recovery.expectLeak }, letGo)
  const givingBack = buildGivingBack(deps, letGo)

  function measure(): ClaimRequest {
    const nowMs = clock.now()
    const { fastSlots, slowSlots, slowGroups, lateGroups, byGroup } = lanes.measure(nowMs)
    return {
      workerId: deps.workerId,
      now: new Date(nowMs),
      fastSlots: givingBack.isPaused() ? 0 : fastSlots,
      slowSlots: givingBack.isPaused() ? 0 : slowSlots,
      slowGroups,
      lateGroups,
      inFlight: byGroup,
      perGroup: policy.perGroup,
      hasPeers: recovery.mayOthersHold(),
    }
  }

  async function claim(): Promise<Claimed[]> {
    // Nothing is posted while the event queue is off, what was recorded before neither.
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

  function start(works: readonly Claimed[]): void {
    if (works.length > 0) deps.onDispatcherPoint?.('after-claim')
    for (const work of works) {
      const ticket = { group: work.group, startedAtMs: clock.now() }
      lanes.enter(ticket)
      held.add(nameClaim(work))
      const settle = (record: () => void) => {
        const isScarce = lanes.isScarce(ticket.group, policy.perGroup)
        lanes.leave(ticket, clock.now())
        record()
        deps.onRoom?.()
        // Rows of a group at its cap may have been routed meanwhile: neither the router nor the last look saw them as due.
        if (isScarce || (mayWait && isFull && hasRoom())) notify()
      }
      const made = (ended: Ended) => {
        givingBack.noteAttempt()
        acknowledger.add(ended, work.group)
      }
      const attempt = policy.attempt(work, interrupting.signal).then(
        (ended) => settle(() => made(ended)),
        (error: unknown) => settle(() => givingBack.add(work, error)),
      )
      running.add(attempt)
      void attempt.finally(() => running.delete(attempt))
    }
  }

  /** Whether the last claim may have left due rows for want of slots, so that the end of an attempt is worth another. */
  let mayWait = false
  /** Whether slots, not caps, were what the last claim wanted for. */
  let isFull = false

  async function round(): Promise<number> {
    await turn.take()
    try {
      const claimed = await claim()
      if (stopping.signal.aborted) {
        await queue.release(claimed, new Date(clock.now()))
        return 0
      }
      start(claimed)
      return claimed.length
    } finally {
      turn.release()
    }
  }

  async function drain(): Promise<number> {
    let total = 0
    for (;;) {
      await recovery.run()
      const claimed = await round()
      total += claimed
      while (running.size > 0 || acknowledger.settled() || givingBack.settled())
        await Promise.all([...running, acknowledger.settled(), givingBack.settled()])
      if (claimed === 0) return total
    }
  }

  function hasRoom(): boolean {
    const { fastSlots, inFlight } = lanes.measure(clock.now())
    return inFlight === 0 || fastSlots >= Math.max(1, policy.concurrency / 8)
  }

  /** Whether slow groups may be served although no fast slot is free. */
  function hasSlowRoom(): boolean {
    const { slowSlots, slowGroups } = lanes.measure(clock.now())
    return slowSlots > 0 && slowGroups.length > 0
  }

  /** Waits until a row is due, a notification, or the poll. */
  async function waitForWork(): Promise<void> {
    const room = measure()
    // Without a free slot nothing could be claimed, whatever is due.
    const nextDueAt = isFull && !hasSlowRoom() ? new Date(clock.now()) : await queue.nextDueAt(room)
    const untilDueMs = nextDueAt ? nextDueAt.getTime() - clock.now() : POLL_MS
    // Due, and not claimed: slots hold it back, and the end of an attempt notifies.
    mayWait = untilDueMs <= 0
    // What late groups have waiting is not looked at until they answer, or others leave them room.
    const pollMs = room.lateGroups.length > 0 ? LATE_AFTER_MS : POLL_MS
    await rest(mayWait ? pollMs : Math.min(untilDueMs, pollMs))
  }

  /** Waits for a notification or so long. While it is full, it looks whether late attempts leave room: no statement is sent. */
  async function rest(ms: number): Promise<void> {
    let isNotified = false
    const notification = notified.promise.then(() => {
      isNotified = true
    })
    const stepMs = isFull ? LOOK_MS : ms
    for (let leftMs = ms; leftMs > 0 && !isNotified; leftMs -= stepMs) {
      const sleep = new AbortController()
      await Promise.race([notification, clock.sleep(Math.min(stepMs, leftMs), sleep.signal)])
      sleep.abort('over')
      if (isFull && hasRoom()) return
    }
  }

  /** Registers this worker. Where there are others, they see it before it claims: all count each other's claims. */
  async function join(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await recovery.run()
        if (lease.hasPeers()) await clock.sleep(JOIN_WAIT_MS, stopping.signal)
        return
      } catch (error) {
        logger.error({ err: error }, 'worker not registered yet: see docs/operations.md, database')
        await clock.sleep(POLL_MS, stopping.signal)
      }
    }
  }

  async function run(): Promise<void> {
    let recoveredAtMs = Number.NEGATIVE_INFINITY
    await join()
    isRunning = true
    while (!stopping.signal.aborted) {
      try {
        // Others may have forgotten a worker that rested.
        if (await deps.gate?.(stopping.signal)) await join()
        notified = Promise.withResolvers()
        // A clock that was set back must not put this off.
        if (Math.abs(clock.now() - recoveredAtMs) >= POLL_MS) {
          recoveredAtMs = clock.now()
          await recovery.run()
        }
        isFull = !hasRoom()
        mayWait = true
        const claimed = isFull && !hasSlowRoom() ? 0 : await round()
        if (claimed === 0 && !stopping.signal.aborted) await waitForWork()
      } catch (error) {
        logger.error({ err: error }, 'dispatcher round failed: see docs/operations.md, database')
        await clock.sleep(POLL_MS, stopping.signal)
      }
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    notify()
    const grace = new AbortController()
    await Promise.race([Promise.all([...running]), clock.sleep(STOP_GRACE_MS, grace.signal)])
    grace.abort()
    interrupting.abort()
    await Promise.all([...running])
    await Promise.all([acknowledger.settled(), givingBack.settled()])
  }

  return {
    policy,
    turn,
    notify,
    inFlight: () => running.size,
    measureRoom: () => {
      const request = measure()
      return isRunning && deps.isEnabled && lease.isTrusted() && !stopping.signal.aborted
        ? request
        : { ...request, fastSlots: 0, slowSlots: 0 }
    },
    hasRoom,
    accept: async (rows) => {
      const works = rows.map((row) => policy.readWork(row))
      if (stopping.signal.aborted) await queue.release(works, new Date(clock.now()))
      else start(works)
    },
    expectLeak: recovery.expectLeak,
    mayLeak: recovery.mayLeak,
    drain,
    run,
    stop,
  }
}
