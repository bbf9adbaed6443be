import type { Logger } from 'pino'
import { type Clock, readMonotonicMs, systemClock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildEventMessage, type LoggedEvent } from '../event-message.ts'
import { type EventLog, LogError, type LogPosition } from '../log.ts'
import { decideLoss, decideRepublishFrom, type Loss } from './loss.ts'
import {
  advanceRepublication,
  type Confirmed,
  leaseRelay,
  noteLoss,
  type RelayState,
  readRepublished,
  releaseRelay,
  takeWaiting,
  type WaitingEvent,
} from './outbox.store.ts'

/** Events of a batch: the log waits for the disks of its servers once a batch. */
const BATCH_SIZE = 250

/** Longer than the log may take to answer, so that a slow answer does not change the relay. */
const LEASE_MS = 20_000

/** Wait for new events, for the lease of another process, and after a failure. */
const POLL_MS = 200
const LEASE_POLL_MS = 1_000
const RETRY_MS = 1_000

/** Interval at which an idle relay looks whether the log still is what it was. */
const CHECK_EVERY_MS = 10_000

/** Wait of a stop for an answer of the log. */
const STOP_LIMIT_MS = 2_000

/** Time for which a log must end too early: a new leader may not have read all of its own log. */
const BEHIND_CONFIRMED_MS = 5_000

/** What a relay counts. */
export interface RelayCounts {
  onAppended: (count: number) => void
  onFailed: () => void
  onLoss: (loss: Loss) => void
}

export interface RelayDeps extends RelayCounts {
  db: Database
  clock: Clock
  logger: Logger
  /** The process. */
  relayId: string
  /** Connects to the log; called again after it failed. Throws a `LogError`. */
  open: () => Promise<EventLog>
  /** The body of a message. */
  buildBody: (event: LoggedEvent) => string
  /** How long the log keeps a message. */
  maxAgeMs: number
  /** Monotonic milliseconds. */
  monotonicMs?: () => number
  /** Pauses in real time. */
  rest?: Clock['sleep']
}

/**
 * Appends the events of the outbox to the log, in its order, at least once (docs/decisions/0058-event-log.md). One process
 * at a time does so, by a lease; a second one beside it would append twice, and never out of order or less.
 */
export interface Relay {
  /** One round: the pause until the next one, in ms. Never throws. */
  round(): Promise<number>
  /** Ends a pause: an event was recorded. */
  notify(): void
  /** Whether the log is reachable from this process; undefined while it does not use it. */
  isConnected(): boolean | undefined
  run(): Promise<void>
  stop(): void
}

/** What this process has verified of the log, and has to tell the database. */
interface Standing {
  end: LogPosition
  confirmed: string[]
  republication: { after: Date; ordinal: string; until: Date } | undefined
  checkedAtMs: number
}

/** A batch whose answer did not come. */
interface Unanswered {
  after: LogPosition
  events: readonly WaitingEvent[]
}

/** Builds the relay of a process. */
export function buildRelay(deps: RelayDeps): Relay {
  const { db, logger, relayId, monotonicMs = readMonotonicMs, rest = systemClock.sleep } = deps
  const stopping = new AbortController()
  const stopped = new AbortController()
  let pause = new AbortController()
  let log: EventLog | undefined
  let standing: Standing | undefined
  let unanswered: Unanswered | undefined
  let behindSinceMs: number | undefined
  let isFailing = false

  const own = { relay: relayId, leaseMs: LEASE_MS }

  /** The lease, and the end of the log. Undefined: the pause until the next look. */
  async function stand(): Promise<number | undefined> {
    const known = await leaseRelay(db, own)
    if (!known) return LEASE_POLL_MS
    log ??= await deps.open()
    const state = await log.readState()
    const loss = decideLoss(known, state)
    if (loss === 'behind' && !isConfirmedBehind()) return RETRY_MS
    behindSinceMs = undefined
    const confirmed = await findStored(log, state)
    const end = { incarnation: state.incarnation, sequence: state.sequence }
    standing = { end, confirmed, republication: readRepublication(known), checkedAtMs: monotonicMs() }
    if (loss) await reportLoss(log, loss, known)
    return undefined
  }

  function isConfirmedBehind(): boolean {
    behindSinceMs ??= monotonicMs()
    return monotonicMs() - behindSinceMs >= BEHIND_CONFIRMED_MS
  }

  /** The events of the batch without an answer, when the log ends with exactly them. */
  async function findStored(from: EventLog, state: LogPosition): Promise<string[]> {
    const batch = unanswered
    unanswered = undefined
    const isLength =
      batch?.after.incarnation === state.incarnation && state.sequence === batch.after.sequence + batch.events.length
    if (!batch || !isLength) return []
    const last = await from.readLast()
    return last?.id === batch.events.at(-1)?.id ? batch.events.map(({ position }) => position) : []
  }

  async function reportLoss(from: EventLog, loss: Loss, known: RelayState): Promise<void> {
    if (!standing) return
    const { end } = standing
    const now = new Date(deps.clock.now())
    const after = decideRepublishFrom(loss, { last: await from.readLast(), now, maxAgeMs: deps.maxAgeMs })
    const noted = await noteLoss(db, { relay: relayId, loss, after, now, end })
    standing.republication = noted && readRepublication(noted)
    deps.onLoss(loss)
    logger.error(
      { loss, confirmed_sequence: known.sequence, log_sequence: end.sequence, republish_after: after.toISOString() },
      'event log lost events, publishing them again: see docs/operations/event-log.md, lost events',
    )
  }

  async function relayWaiting(to: EventLog, at: Standing): Promise<number> {
    const confirmed: Confirmed = { positions: at.confirmed, end: at.end }
    const { events, removed } = await takeWaiting(db, { ...own, confirmed, limit: BATCH_SIZE })
    at.confirmed = removed
    if (removed.length > 0)
      logger.error(
        { events: removed.length },
        'events were removed by retention before they reached the event log: see docs/operations/event-log.md, backlog',
      )
    if (events.length === 0) return removed.length > 0 ? 0 : idle(to, at)
    at.end = await append(to, events, at.end)
    at.confirmed.push(...events.map(({ position }) => position))
    return 0
  }

  async function relayAgain(to: EventLog, at: Standing, from: NonNullable<Standing['republication']>): Promise<number> {
    const events = await readRepublished(db, from, BATCH_SIZE)
    const last = events.at(-1)
    if (last) at.end = await append(to, events, at.end)
    const next = last ? { after: last.createdAt, ordinal: last.position } : null
    const isAhead = await advanceRepublication(db, { ...own, end: at.end, seen: from.after, next })
    if (!isAhead) standing = undefined
    else at.republication = next ? { ...from, ...next } : undefined
    if (isAhead && !next) logger.info('event log: all events are published again')
    return 0
  }

  async function append(to: EventLog, events: readonly WaitingEvent[], after: LogPosition): Promise<LogPosition> {
    const isRepublished = standing?.republication !== undefined
    if (!isRepublished) unanswered = { after, events }
    const end = await to.append(
      events.map((event) => buildEventMessage(event, deps.buildBody)),
      after,
    )
    unanswered = undefined
    deps.onAppended(events.length)
    return end
  }

  /** Nothing waits. A republication that a command began, a lost lease and a replaced log are seen by the next check. */
  async function idle(to: EventLog, at: Standing): Promise<number> {
    if (monotonicMs() - at.checkedAtMs < CHECK_EVERY_MS) return POLL_MS
    const [known, state] = [await leaseRelay(db, own), await to.readState()]
    at.checkedAtMs = monotonicMs()
    if (!known || known.republishUntil || decideLoss(known, state)) standing = undefined
    return standing ? POLL_MS : 0
  }

  async function turn(): Promise<number> {
    if (!standing) {
      const wait = await stand()
      if (wait !== undefined) return wait
    }
    if (!log || !standing) return 0
    const { republication } = standing
    return republication ? relayAgain(log, standing, republication) : relayWaiting(log, standing)
  }

  async function fail(error: unknown): Promise<number> {
    standing = undefined
    // Another writer, or a loss: the next round finds out.
    if (error instanceof LogError && error.code === 'conflict') {
      unanswered = undefined
      return 0
    }
    deps.onFailed()
    if (!isFailing)
      logger.warn(
        { err: error, ...(error instanceof LogError && { log_error: error.code }) },
        'event log not written, events wait in the database: see docs/operations/event-log.md, codes',
      )
    isFailing = true
    // Another process may reach the log.
    await releaseRelay(db, relayId).catch(() => {})
    if (error instanceof LogError && error.code !== 'unreachable') await closeLog()
    return RETRY_MS
  }

  async function closeLog(): Promise<void> {
    const open = log
    log = undefined
    await open?.close()
  }

  async function round(): Promise<number> {
    try {
      const wait = await turn()
      if (isFailing && standing) {
        isFailing = false
        logger.info('event log is written again')
      }
      return wait
    } catch (error) {
      return fail(error)
    }
  }

  return {
    round,
    notify: () => pause.abort(),
    isConnected: () => log?.isConnected(),
    run: async () => {
      while (!stopping.signal.aborted) {
        pause = new AbortController()
        const wait = await round()
        if (wait > 0) await rest(wait, AbortSignal.any([stopping.signal, pause.signal]))
      }
      stopped.abort()
      await confirmLast()
      await releaseRelay(db, relayId).catch(() => {})
      await closeLog()
    },
    stop: () => {
      stopping.abort()
      // What waits for an answer of the log ends with its connection.
      void rest(STOP_LIMIT_MS, stopped.signal).then(closeLog)
    },
  }

  /** What is stored is not sent again by the next relay. */
  async function confirmLast(): Promise<void> {
    if (!standing || standing.republication || standing.confirmed.length === 0) return
    const confirmed = { positions: standing.confirmed, end: standing.end }
    await takeWaiting(db, { ...own, confirmed, limit: 0 }).catch(() => {})
  }
}

function readRepublication({ republishAfter, republishOrdinal, republishUntil }: RelayState) {
  if (!republishAfter || !republishUntil) return undefined
  return { after: republishAfter, ordinal: republishOrdinal ?? '0', until: republishUntil }
}
