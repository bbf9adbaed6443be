import { readMonotonicMs, systemClock } from '../../base/clock.ts'
import type { Loop } from '../../base/rounds.ts'
import { LogError } from '../log/log.ts'
import { releaseRelay, takeWaiting } from './outbox.store.ts'
import { leaseOf, RETRY_MS, type RelayContext, type RelayDeps, takeTurn } from './relay-turn.ts'

const STOP_LIMIT_MS = 2_000

/** The pause after the second conflict in a row. It doubles with each further one; from `RETRY_MS` on it is a failure. */
const CONFLICT_MS = 10

/**
 * Appends the events of the outbox to the log, in its order, at least once (docs/decisions/0058-event-log.md). One
 * process at a time does so, by a lease; a second one could only append duplicates, never out of order and never less.
 */
export interface Relay extends Loop {
  /** One round: the pause until the next one, in ms. Never throws. */
  round(): Promise<number>
  /** Ends a pause, but that after a failure: an event was recorded. */
  notify(): void
  /** Whether this process reaches the log; undefined while it does not use it. */
  isConnected(): boolean | undefined
}

/** Builds the relay of a process. */
export function buildRelay(given: RelayDeps): Relay {
  const deps = { monotonicMs: readMonotonicMs, ...given }
  const { rest = systemClock.sleep, logger, db } = deps
  const context: RelayContext = {
    deps,
    ...{ log: undefined, standing: undefined, unanswered: undefined, behindSinceMs: undefined },
  }
  const stopping = new AbortController()
  const stopped = new AbortController()
  let pause = new AbortController()
  let isFailing = false
  /** Whether the last round failed. */
  let hasFailed = false
  /** Conflicts without an append between them. */
  let conflicts = 0

  async function fail(error: unknown): Promise<number> {
    context.standing = undefined
    // A leader that has not read its whole log: the one that answers next may be another one.
    context.behindSinceMs = undefined
    const code = error instanceof LogError ? error.code : undefined
    // Another writer or a loss: the next round decides.
    if (code === 'conflict') {
      context.unanswered = undefined
      conflicts += 1
      const wait = conflicts === 1 ? 0 : CONFLICT_MS * 2 ** (conflicts - 2)
      if (wait < RETRY_MS) return wait
    }
    deps.onFailed()
    if (!isFailing)
      logger.warn(
        { err: error, ...(code && { log_error: code }) },
        'event log not written, events wait in the database: see docs/operations/event-log.md, codes',
      )
    isFailing = true
    // Another process may reach the log.
    await releaseRelay(db, { relay: deps.relayId }).catch(() => {})
    // A server that answers without the log is cut off from the others: the next connection may reach another one.
    if (code !== undefined && (code !== 'unreachable' || context.log?.isConnected())) await closeLog(context)
    return RETRY_MS
  }

  async function round(): Promise<number> {
    try {
      const wait = await takeTurn(context)
      hasFailed = false
      if (!context.standing) return wait
      conflicts = 0
      if (isFailing) {
        isFailing = false
        logger.info('event log is written again')
      }
      return wait
    } catch (error) {
      hasFailed = true
      return fail(error)
    }
  }

  return {
    round,
    notify: () => pause.abort(),
    isConnected: () => context.log?.isConnected(),
    run: async () => {
      while (!stopping.signal.aborted) {
        pause = new AbortController()
        const wait = await round()
        // Events that are recorded while the log is not written make no round.
        const isOver = hasFailed ? stopping.signal : AbortSignal.any([stopping.signal, pause.signal])
        if (wait > 0) await rest(wait, isOver)
      }
      stopped.abort()
      await confirmLast(context)
      await releaseRelay(db, { relay: deps.relayId }).catch(() => {})
      await closeLog(context)
    },
    stop: () => {
      stopping.abort()
      // Closing the connection ends the calls that wait for the log.
      void rest(STOP_LIMIT_MS, stopped.signal).then(() => closeLog(context))
    },
  }
}

async function closeLog(context: RelayContext): Promise<void> {
  const { log } = context
  context.log = undefined
  await log?.close()
}

/** Stores the last confirmations, so that the next relay does not send their events again. */
async function confirmLast(context: RelayContext): Promise<void> {
  const { standing, deps } = context
  if (!standing || standing.republication || standing.confirmed.length === 0) return
  const confirmed = { positions: standing.confirmed, end: standing.end, own: standing.own }
  await takeWaiting(deps.db, { ...leaseOf(context), confirmed, limit: 0 }).catch(() => {})
}
