import type { Logger } from 'pino'
import { type Database, inTransaction } from '../postgres/database.ts'
import { type AttemptDeps, makeAttempt } from './attempt.ts'
import {
  type ClaimedDispatch,
  claimDispatches,
  findLostClaims,
  findNextDueAt,
  type LostClaim,
  releaseClaims,
} from './claim.store.ts'
import { buildLanes } from './lanes.ts'
import {
  type EndedAttempt,
  type RecordDeps,
  type RecordedAttempt,
  recordAttempts,
  type WebhookNotice,
} from './record.ts'

/**
 * How long a claim holds: longer than a POST may take (15 s) and its result may wait for a database that pauses. A process
 * that dies is noticed when this has passed.
 */
export const LEASE_MS = 30_000

/** How long the dispatcher sleeps at most when nothing wakes it. */
export const POLL_MS = 1_000

/** Results recorded in one transaction at most. */
const RECORD_BATCH_SIZE = 500

/** How long running POSTs may go on once the process is asked to stop. */
const STOP_GRACE_MS = 6_000

/** How long a result waits before it is recorded again after the database refused. */
const RECORD_RETRY_MS = 250

export interface DispatcherDeps extends AttemptDeps, RecordDeps {
  db: Database
  logger: Logger
  /** POSTs under way in this process at most (WEBHOOK_CONCURRENCY). */
  concurrency: number
  /** POSTs under way for one webhook at most, over all processes. */
  perWebhook: number
  /** Told of each recorded attempt and notice, for metrics. */
  onRecorded?: (recorded: readonly RecordedAttempt[], notices: readonly WebhookNotice[]) => void
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'after-claim' | 'before-record' | 'during-record') => void
}

/** Posts what is due. One for each process with the role `dispatcher`. */
export interface Dispatcher {
  /** Looks for due work now: a row was written, a retry came due. Cheap; any number of calls make one round. */
  wake(): void
  /** POSTs under way now. */
  underWay(): number
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
  const ended: EndedAttempt[] = []
  const running = new Set<Promise<void>>()
  let recording: Promise<void> | undefined
  let wakeUp = Promise.withResolvers<void>()

  const wake = () => wakeUp.resolve()

  async function claim(): Promise<ClaimedDispatch[]> {
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
    const attempt = makeAttempt(deps, claimed, interrupting.signal).then((result) => {
      lanes.leave(ticket, clock.now())
      ended.push(result)
      recording ??= recordAll().finally(() => {
        recording = undefined
      })
    })
    running.add(attempt)
    void attempt.finally(() => running.delete(attempt))
  }

  /** Records results as they come, all that wait in one transaction: under load the batches grow by themselves. */
  async function recordAll(): Promise<void> {
    while (ended.length > 0) {
      const batch = ended.slice(0, RECORD_BATCH_SIZE)
      try {
        await recordBatch(batch)
        ended.splice(0, batch.length)
        wake()
      } catch (error) {
        logger.error(
          { err: error, attempts: batch.length },
          'attempts not recorded yet: see docs/operations.md, database',
        )
        await clock.sleep(RECORD_RETRY_MS)
      }
    }
  }

  async function recordBatch(batch: readonly EndedAttempt[]): Promise<void> {
    deps.onDispatcherPoint?.('before-record')
    const { recorded, notices } = await inTransaction(db, async (tx) => {
      const result = await recordAttempts(deps, tx, batch)
      deps.onDispatcherPoint?.('during-record')
      return result
    })
    for (const one of recorded) logAttempt(logger, one)
    for (const notice of notices) logger.warn(notice, `${notice.event}: see docs/operations.md, failing webhooks`)
    deps.onRecorded?.(recorded, notices)
  }

  /** Takes back what lost processes held: their attempt counts as interrupted and is made again at once. */
  async function recoverLost(): Promise<number> {
    const now = new Date(clock.now())
    const lost = await inTransaction(db, async (tx) => {
      const claims = await findLostClaims(tx, now, RECORD_BATCH_SIZE)
      if (claims.length > 0)
        await recordAttempts(
          deps,
          tx,
          claims.map((one) => toInterrupted(one, now)),
        )
      return claims
    })
    for (const { id, webhook, workerId, attempt } of lost)
      logger.warn({ dispatch: id, webhook, worker: workerId, attempt }, 'attempt lost with its process; made again')
    return lost.length
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
      while (running.size > 0 || recording) await Promise.all([...running, recording])
      if (claimed === 0) return total
    }
  }

  /** Whether enough places came free for a claim to be worth its transaction. */
  function hasRoom(): boolean {
    const { fastPlaces, slowPlaces, underWay } = lanes.measure(clock.now())
    return underWay === 0 || fastPlaces >= Math.max(1, deps.concurrency / 8) || (fastPlaces === 0 && slowPlaces > 0)
  }

  async function waitForWork(): Promise<void> {
    const nextDueAt = await findNextDueAt(db)
    const untilDueMs = nextDueAt ? Math.max(0, nextDueAt.getTime() - clock.now()) : POLL_MS
    const sleep = new AbortController()
    // Due already, and yet nothing was claimed: the caps hold it back. The end of an attempt wakes us; the poll is for the rest.
    const limitMs = Math.min(untilDueMs === 0 ? POLL_MS : untilDueMs, POLL_MS)
    await Promise.race([wakeUp.promise, clock.sleep(limitMs, sleep.signal)])
    sleep.abort()
  }

  async function run(): Promise<void> {
    let recoveredAtMs = 0
    while (!stopping.signal.aborted) {
      try {
        wakeUp = Promise.withResolvers()
        if (clock.now() - recoveredAtMs >= POLL_MS) {
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
    wake()
    const grace = new AbortController()
    await Promise.race([Promise.all([...running]), clock.sleep(STOP_GRACE_MS, grace.signal)])
    grace.abort()
    interrupting.abort()
    await Promise.all([...running])
    await recording
  }

  return { wake, underWay: () => running.size, drain, stop, run }
}

function toInterrupted(claim: LostClaim, now: Date): EndedAttempt {
  return {
    ...claim,
    endedAt: now,
    durationMs: Math.max(0, now.getTime() - claim.startedAt.getTime()),
    result: { errorClass: 'interrupted' },
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
  }
}

/** The one line of an attempt: ids first, the decision included (models, habit 14). Never a body or a signature. */
function logAttempt(logger: Logger, { attempt, decision, isRecorded }: RecordedAttempt): void {
  const line = {
    dispatch: attempt.id,
    webhook: attempt.webhook,
    event: attempt.event,
    attempt: attempt.attempt,
    trigger: attempt.trigger,
    worker: attempt.workerId,
    status_code: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    error: decision.lastError,
    duration_ms: Math.round(attempt.durationMs),
    status: decision.status,
    next_attempt_at: decision.nextAttemptAt?.toISOString() ?? null,
    recorded: isRecorded,
  }
  if (decision.lastError === null) logger.info(line, 'attempt')
  else logger.warn(line, 'attempt')
}
