import type { Logger } from 'pino'
import { type Clock, readMonotonicMs, systemClock } from '../../base/clock.ts'
import type { Loop } from '../../base/rounds.ts'
import { parseLsn } from '../../postgres/connection/replica.ts'
import type { OwnEdges } from '../../postgres/own-retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type EventLog, fingerprintOf, type LogEntry, LogError, type LogPosition } from '../log/log.ts'
import {
  findReferencePosition,
  type IntakeState,
  leaseIntake,
  noteFault,
  releaseIntake,
  takeIn,
} from './intake.store.ts'
import {
  decideIntake,
  decideReadSince,
  findFault,
  type IntakeDecision,
  type IntakeFault,
  type IntakePlace,
} from './intake-decision.ts'
import { buildSuspicion } from './suspicion.ts'

/** Messages of one read, and of one statement. */
const BATCH_SIZE = 500

/** Longer than the log may take to answer. */
const LEASE_MS = 20_000

/** Wait for new messages, for the lease of another process, for reference rows, and after a failure. */
const POLL_MS = 100
const LEASE_POLL_MS = 1_000
const REFERENCE_POLL_MS = 50
const RETRY_MS = 1_000

/** Interval at which an idle intake renews its lease. */
const RENEW_EVERY_MS = 5_000

/** The shortest retention that an account may have. */
const SHORTEST_RETENTION_MS = 86_400_000

export interface IntakeCounts {
  onTaken: (count: number) => void
  onFailed: () => void
  onFault: (fault: IntakeFault) => void
}

export interface IntakeDeps extends IntakePlace, IntakeCounts {
  db: Database
  clock: Clock
  logger: Logger
  runnerId: string
  /** Connects to the log; called again after it failed. Throws a `LogError`. */
  open: () => Promise<EventLog>
  /** The text of a sealed header; undefined for another seal. */
  unseal: (sealed: string) => string | undefined
  /** Types whose events their database has dealt with. */
  isPassedOver: (type: string) => boolean
  /** How long events are kept: older ones are not taken in. */
  retentionMs: number
  /** The edges of accounts with a retention of their own. Read when an event is old enough for the shortest one. */
  readOwnEdges: () => Promise<OwnEdges>
  onQueued: () => void
  /** Monotonic milliseconds. */
  monotonicMs?: () => number
  /** Pauses in real time. */
  rest?: Clock['sleep']
}

/** Takes in what other databases recorded and this one delivers, at least once (docs/decisions/0062-cells.md). */
export interface Intake extends Loop {
  /** One round: the pause until the next one, in ms. Never throws. */
  round(): Promise<number>
}

/** Builds the intake of a database in this process. */
export function buildIntake(given: IntakeDeps): Intake {
  const deps = { monotonicMs: readMonotonicMs, ...given }
  const { db, logger, runnerId: runner, rest = systemClock.sleep } = deps
  const hasRows = buildReferenceCheck(db, deps.self)
  const suspicion = buildSuspicion(deps.monotonicMs)
  const stopping = new AbortController()
  let log: EventLog | undefined
  /** Last answer of the database; undefined until the lease is taken, and after each failure. */
  let state: IntakeState | undefined
  let renewedAtMs = 0
  let isFailing = false

  async function closeLog(): Promise<void> {
    const closing = log
    log = undefined
    await closing?.close()
  }

  async function fail(error: unknown): Promise<number> {
    const code = error instanceof LogError ? error.code : undefined
    const fault = findFault(code)
    if (fault === 'ahead' && !suspicion.isConfirmed()) return RETRY_MS
    const seen = state
    state = undefined
    if (fault && seen) {
      suspicion.end()
      const since = decideReadSince(fault, seen.storedAt)
      await noteFault(db, { runner, fault, since, now: new Date(deps.clock.now()) })
      deps.onFault(fault)
      logger.error(
        { fault, position: seen.sequence, read_since: since.toISOString() },
        'event log cannot be read on, it is read again from a time: see docs/operations/cells.md, faults of the log',
      )
      return 0
    }
    // The leader that answers next may be another one, which has not read its whole log either.
    suspicion.end()
    deps.onFailed()
    if (!isFailing)
      logger.warn(
        { err: error, ...(code && { log_error: code }) },
        'events of other databases are not taken in, they wait in the event log: see docs/operations/cells.md, intake',
      )
    isFailing = true
    await releaseIntake(db, { runner }).catch(() => {})
    if (code !== undefined && code !== 'unreachable') await closeLog()
    return RETRY_MS
  }

  async function idle(from: IntakeState): Promise<number> {
    if (deps.monotonicMs() - renewedAtMs < RENEW_EVERY_MS) return POLL_MS
    // Somebody may have asked for an earlier instant.
    state = await leaseIntake(db, { runner, leaseMs: LEASE_MS })
    renewedAtMs = deps.monotonicMs()
    const isSame = state?.readSince?.getTime() === from.readSince?.getTime()
    return state && isSame ? POLL_MS : 0
  }

  async function turn(): Promise<number> {
    if (!state) {
      state = await leaseIntake(db, { runner, leaseMs: LEASE_MS })
      renewedAtMs = deps.monotonicMs()
      if (!state) return LEASE_POLL_MS
    }
    const seen = state
    log ??= await deps.open()
    await suspicion.check(log, seen)
    const { entries, end, isUncertain } = await readOn(log, seen)
    if (isUncertain) return idle(seen)
    const last = entries.at(-1)
    const at = last ?? end?.message
    if (!last && !end) return idle(seen)
    const decision = await decide(deps, entries)
    if (!(await hasRows(decision))) return REFERENCE_POLL_MS
    const to = last
      ? { incarnation: end?.incarnation ?? (seen.incarnation as string), sequence: last.sequence }
      : (end as LogPosition)
    const message = { storedAt: at?.storedAt ?? null, fingerprint: at ? fingerprintOf(at) : null }
    const isHome = deps.self === 'home'
    const taking = { isHome, events: decision.events, to, ...message, seen, runner, leaseMs: LEASE_MS }
    const { isLeased, taken, readSince } = await takeIn(db, taking)
    state = isLeased ? { ...to, ...message, storedAt: message.storedAt ?? seen.storedAt, readSince } : undefined
    renewedAtMs = deps.monotonicMs()
    report(logger, decision)
    if (taken > 0) deps.onTaken(taken)
    if (taken > 0) deps.onQueued()
    return 0
  }

  async function round(): Promise<number> {
    try {
      const wait = await turn()
      if (isFailing && state && wait <= POLL_MS) {
        isFailing = false
        logger.info('events of other databases are taken in again')
      }
      return wait
    } catch (error) {
      return fail(error).catch(fail)
    }
  }

  return {
    round,
    run: async () => {
      while (!stopping.signal.aborted) {
        const wait = await round()
        if (wait > 0) await rest(wait, stopping.signal)
      }
      await releaseIntake(db, { runner }).catch(() => {})
      await closeLog()
    },
    stop: () => {
      stopping.abort()
      // A wait for an answer of the log ends with its connection.
      void closeLog()
    },
  }
}

/** Decides about a batch; retentions of accounts are read when an event is old enough for the shortest one. */
async function decide(deps: IntakeDeps, entries: readonly LogEntry[]): Promise<IntakeDecision> {
  const now = deps.clock.now()
  const given = { ...deps, open: deps.unseal, oldest: new Date(now - deps.retentionMs) }
  const decision = decideIntake(entries, given)
  if (!decision.events.some(({ event }) => event.createdAt.getTime() < now - SHORTEST_RETENTION_MS)) return decision
  const { own } = await deps.readOwnEdges()
  return decideIntake(entries, { ...given, own: new Map(own.map(({ account, before }) => [account, before])) })
}

/**
 * The next messages. Read from an instant, `end` is the log before that read, with its last message: its incarnation
 * belongs to them, and without messages its end is the position. `isUncertain`: no messages, and none is not true. A
 * leader of yesterday and a server that stops say so as well.
 */
async function readOn(log: EventLog, { incarnation, sequence, fingerprint, readSince }: IntakeState) {
  if (incarnation !== null && readSince === null) {
    const from = { incarnation, sequence }
    const entries = await log.read({ from, fingerprint: fingerprint ?? undefined, limit: BATCH_SIZE })
    return { entries, end: undefined, isUncertain: false }
  }
  const { incarnation: now, sequence: last, messages } = await log.readState()
  const message = last > 0 ? await log.readAt(last) : undefined
  const from = readSince ?? new Date(0)
  const entries = await log.read({ from, limit: BATCH_SIZE })
  const isNone = messages === 0 || (message !== undefined && message.storedAt < from)
  const isUncertain = entries.length === 0 && !isNone
  return { entries, end: { incarnation: now, sequence: last, message }, isUncertain }
}

function report(logger: Logger, { tooOld, foreign }: IntakeDecision): void {
  if (tooOld > 0)
    logger.warn(
      { events: tooOld },
      'events of the log are older than the ledger is kept, and were not taken in: see docs/operations/cells.md, old events',
    )
  if (foreign > 0)
    logger.error(
      { messages: foreign },
      'messages of the event log have another seal, and were not taken in: see docs/operations/cells.md, foreign messages',
    )
}

/** Builds the check whether a cell has the reference rows that its events need; home has them all. */
function buildReferenceCheck(db: Database, self: string): (decision: IntakeDecision) => Promise<boolean> {
  let known = 0n
  return async ({ reference }) => {
    if (reference === undefined || self === 'home') return true
    const needed = parseLsn(reference)
    if (needed <= known) return true
    const position = await findReferencePosition(db)
    if (position !== undefined) known = parseLsn(position)
    return needed <= known
  }
}
