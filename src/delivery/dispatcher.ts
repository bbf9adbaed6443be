import { inTransaction } from '../postgres/database.ts'
import { type AcknowledgerDeps, buildAcknowledger, notifyRecorded } from './acknowledger.ts'
import { type AttemptDeps, makeAttempt } from './attempt.ts'
import {
  type ClaimedDispatch,
  claimDispatches,
  type ExpiredLease,
  findLostClaims,
  findNextDueAt,
  releaseClaims,
} from './claim.store.ts'
import { buildLanes } from './lanes.ts'
import { type EndedAttempt, nameClaim, recordAttempts } from './settle.ts'

/**
 * How long a claim holds: longer than a POST may take (15 s) and its result may wait for a database that pauses. A process
 * that dies is noticed when this has passed.
 */
export const LEASE_MS = 30_000

/** How long the dispatcher sleeps at most when nothing notifies it. */
export const POLL_MS = 1_000

/** Lost claims taken back in one transaction at most. */
const RECOVER_BATCH_SIZE = 500

/** How long running POSTs may go on once the process is asked to stop. */
const STOP_GRACE_MS = 6_000

export interface DispatcherDeps extends AttemptDeps, Omit<AcknowledgerDeps, 'onDispatcherPoint'> {
  /** POSTs in flight in this process at most (WEBHOOK_CONCURRENCY). */
  concurrency: number
  /** POSTs in flight for one webhook at most, over all processes. */
  perWebhook: number
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'after-claim' | 'before-record' | 'during-record') => void
}

/** Posts what is due. One for each process with the role `dispatcher`. */
export interface Dispatcher {
  /** Looks for due work now: a row was written, a retry came due. Cheap; any number of calls make one round. */
  notify(): void
  /** POSTs in flight now. */
  inFlight(): number
  /** Claims and posts what is due now and resolves when all of it is recorded. Tests with a manual clock call this. */
  drain(): Promise<number>
  /** Claims nothing more, lets running POSTs end, interrupts those that do not, gives the rest back. */
  stop(): Promise<void>
  /** Runs until stopped: claim, post, record. */
  run(): Promise<void>
}

/** Builds the dispatcher. */
export function buildDispatcher(deps: DispatcherDeps): Dispatcher {
  const { clock, db, logger } = deps
  const lanes = buildLanes(deps.concurrency)
  const stopping = new AbortController()
  const interrupting = new AbortController()
  const running = new Set<Promise<void>>()
  let notified = Promise.withResolvers<void>()

  const notify = () => notified.resolve()
  /** Claims that this process answers for: posted, or waiting to be recorded. */
  const held = new Set<string>()
  const acknowledger = buildAcknowledger(deps, (done) => {
    for (const one of done) held.delete(nameClaim(one))
    notify()
  })

  async function claim(): Promise<ClaimedDispatch[]> {
    // Nothing leaves while the queue is off, what was recorded before neither (docs/contract/events.md#event-queue-switch; docs/contract/events.md#atomicity).
    if (!deps.enableApiEventQueue) return []
    const nowMs = clock.now()
    const { fastPlaces, slowPlaces, slowWebhooks } = lanes.measure(nowMs)
    if (fastPlaces + slowPlaces === 0) return []
    const claimed = await inTransaction(db, (tx) =>
      claimDispatches(tx, {
        workerId: deps.workerId,
        now: new Date(nowMs),
        leaseUntil: new Date(nowMs + LEASE_MS),
        fastPlaces,
        slowPlaces,
        slowWebhooks,
        perWebhook: deps.perWebhook,
      }),
    )
    if (claimed.length > 0) deps.onDispatcherPoint?.('after-claim')
    return claimed
  }

  function start(claimed: ClaimedDispatch): void {
    const ticket = { webhook: claimed.webhook.id, startedAtMs: clock.now() }
    lanes.enter(ticket)
    held.add(nameClaim(claimed))
    const attempt = makeAttempt(deps, claimed, interrupting.signal).then((result) => {
      lanes.leave(ticket, clock.now())
      acknowledger.add(result)
    })
    running.add(attempt)
    void attempt.finally(() => running.delete(attempt))
  }

  /**
   * Takes back what lost processes held: their attempt counts as interrupted and is made again at once. What this process
   * holds itself is not lost, whatever the clock says after a jump or a pause of the database: its result is here or comes.
   */
  async function recoverLost(): Promise<void> {
    const now = new Date(clock.now())
    const expired = await findLostClaims(db, now, RECOVER_BATCH_SIZE)
    const lost = expired.filter((one) => !held.has(nameClaim(one)))
    if (lost.length === 0) return
    const { recorded, notices } = await inTransaction(db, (tx) =>
      recordAttempts(
        deps,
        tx,
        lost.map((one) => toInterrupted(one, now)),
      ),
    )
    // Of several processes that see a lost claim one records it; the others have nothing to tell.
    const own = recorded.filter((one) => one.isRecorded)
    notifyRecorded(deps, own, notices)
    for (const { attempt, decision } of own)
      logger.warn(
        { dispatch: attempt.id, webhook: attempt.webhook, worker: attempt.workerId, status: decision.status },
        'attempt lost with its process',
      )
  }

  async function round(): Promise<number> {
    const claimed = await claim()
    if (stopping.signal.aborted) {
      await releaseClaims(db, claimed, new Date(clock.now()))
      return 0
    }
    for (const one of claimed) start(one)
    return claimed.length
  }

  async function drain(): Promise<number> {
    let total = 0
    for (;;) {
      await recoverLost()
      const claimed = await round()
      total += claimed
      while (running.size > 0 || acknowledger.settled()) await Promise.all([...running, acknowledger.settled()])
      if (claimed === 0) return total
    }
  }

  /** Whether enough places came free for a claim to be worth its transaction. */
  function hasRoom(): boolean {
    const { fastPlaces, slowPlaces, inFlight } = lanes.measure(clock.now())
    return inFlight === 0 || fastPlaces >= Math.max(1, deps.concurrency / 8) || (fastPlaces === 0 && slowPlaces > 0)
  }

  async function waitForWork(): Promise<void> {
    // Without room nothing that comes due could be taken; the end of an attempt makes room, and notifies it.
    const nextDueAt = hasRoom() ? await findNextDueAt(db) : null
    const untilDueMs = nextDueAt ? Math.max(0, nextDueAt.getTime() - clock.now()) : POLL_MS
    const sleep = new AbortController()
    // Due already, and yet nothing was claimed: the caps hold it back. The end of an attempt notifies it; the poll is for the rest.
    const limitMs = Math.min(untilDueMs === 0 ? POLL_MS : untilDueMs, POLL_MS)
    await Promise.race([notified.promise, clock.sleep(limitMs, sleep.signal)])
    sleep.abort()
  }

  async function run(): Promise<void> {
    let recoveredAtMs = 0
    while (!stopping.signal.aborted) {
      try {
        notified = Promise.withResolvers()
        // A clock that was set back must not put this off.
        if (Math.abs(clock.now() - recoveredAtMs) >= POLL_MS) {
          recoveredAtMs = clock.now()
          await recoverLost()
        }
        const claimed = hasRoom() ? await round() : 0
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
    await acknowledger.settled()
  }

  return { notify, inFlight: () => running.size, drain, stop, run }
}

function toInterrupted(claim: ExpiredLease, now: Date): EndedAttempt {
  return {
    ...claim,
    traceId: null,
    endedAt: now,
    // How long it really ran is not known; never longer than its claim held, however long nobody was there to look.
    durationMs: Math.min(LEASE_MS, Math.max(0, now.getTime() - claim.startedAt.getTime())),
    result: { errorClass: 'interrupted' },
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
  }
}
