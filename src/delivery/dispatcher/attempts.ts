import { type Claim, nameClaim, type Work } from '../policy.ts'
import { buildAcknowledger } from './acknowledger.ts'
import type { DispatcherDeps } from './dispatcher-parts.ts'
import { buildGivingBack } from './giving-back.ts'
import type { Lanes, LaneTicket } from './lanes.ts'

/** Time for attempts in flight after the process is asked to stop. */
const STOP_GRACE_MS = 6_000

/** Time for which a claim with a refused result is kept: its attempt is repeated, and may be refused again. */
const REFUSED_KEPT_MS = 20_000

export interface AttemptsDeps<Claimed extends Work, Ended extends Claim, Settled>
  extends Omit<DispatcherDeps<Claimed, Ended, Settled>, 'lease' | 'workerId' | 'isEnabled' | 'latch'> {
  lanes: Lanes
  /** Runs for a result that the database refuses permanently: its claim still exists. */
  onRefused: () => void
  /** Runs when an attempt ended. `isScarce`: rows of its group may wait for the freed slot. */
  onEnded: (isScarce: boolean) => void
}

/** The claims of this process: each is in flight until its attempt ends, then kept until it is recorded. */
export interface Attempts<Claimed> {
  start(works: readonly Claimed[]): void
  /** The claims that this process has (`nameClaim`). */
  heldClaims(): ReadonlySet<string>
  inFlight(): number
  /** Whether claims are paused, because this process lacks a resource that every attempt needs. */
  isPaused(): boolean
  /** Resolves when nothing is in flight and everything is recorded. */
  allRecorded(): Promise<void>
  /** Waits `STOP_GRACE_MS` for attempts to end, interrupts the others, and records them. */
  stop(): Promise<void>
}

/** Builds it: an attempt takes a slot of the lanes; the acknowledger records its result, or its claim is released. */
export function buildAttempts<Claimed extends Work, Ended extends Claim, Settled>(
  deps: AttemptsDeps<Claimed, Ended, Settled>,
): Attempts<Claimed> {
  const { policy, clock, lanes } = deps
  const interrupting = new AbortController()
  const running = new Map<LaneTicket, Promise<void>>()
  const held = new Set<string>()
  const refused = new Set<string>()
  const forget = (done: readonly Claim[]) => {
    for (const name of done.map(nameClaim)) if (!refused.has(name)) held.delete(name)
  }
  const onRefused = (claim: Claim) => {
    const name = nameClaim(claim)
    refused.add(name)
    deps.onRefused()
    void clock.sleep(REFUSED_KEPT_MS, interrupting.signal).then(() => {
      refused.delete(name)
      held.delete(name)
    })
  }
  const acknowledger = buildAcknowledger({ ...deps, onRefused }, forget)
  const givingBack = buildGivingBack(deps, forget)

  function start(work: Claimed): void {
    const ticket = { group: work.group, startedAtMs: clock.now() }
    lanes.enter(ticket)
    held.add(nameClaim(work))
    const settle = (record: () => void) => {
      const isScarce = lanes.isScarce(ticket.group, policy.perGroup)
      lanes.leave(ticket, clock.now())
      record()
      running.delete(ticket)
      deps.onRoom?.()
      deps.onEnded(isScarce)
    }
    const made = (ended: Ended) => {
      givingBack.noteAttempt()
      acknowledger.add(ended, work.group)
    }
    const attempt = policy.attempt(work, interrupting.signal).then(
      (ended) => settle(() => made(ended)),
      (error: unknown) => settle(() => givingBack.add(work, error)),
    )
    running.set(ticket, attempt)
  }

  return {
    start: (works) => {
      if (works.length > 0) deps.onDispatcherPoint?.('after-claim')
      for (const work of works) start(work)
    },
    heldClaims: () => held,
    inFlight: () => running.size,
    isPaused: givingBack.isPaused,
    allRecorded: async () => {
      while (running.size > 0 || acknowledger.settled() || givingBack.settled())
        await Promise.all([...running.values(), acknowledger.settled(), givingBack.settled()])
    },
    stop: async () => {
      const grace = new AbortController()
      await Promise.race([Promise.all(running.values()), clock.sleep(STOP_GRACE_MS, grace.signal)])
      grace.abort()
      interrupting.abort()
      await Promise.all(running.values())
      await Promise.all([acknowledger.settled(), givingBack.settled()])
    },
  }
}
