import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import {
  type EndedAttempt,
  type RecordDeps,
  type RecordedAttempt,
  recordAttempts,
  type WebhookNotice,
} from './settle.ts'

/** Results recorded in one transaction at most. */
const RECORD_BATCH_SIZE = 500

/** How long a result waits before it is recorded again after the database refused. */
const RECORD_RETRY_MS = 250

export interface AcknowledgerDeps extends RecordDeps {
  clock: Clock
  db: Database
  logger: Logger
  /** Told of each recorded attempt and notice, for metrics. */
  onRecorded?: (recorded: readonly RecordedAttempt[], notices: readonly WebhookNotice[]) => void
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'before-record' | 'during-record') => void
}

/** Records ended attempts as they come, all that wait in one transaction: under load the batches grow by themselves. */
export interface Acknowledger {
  add(attempt: EndedAttempt): void
  /** Resolves when nothing waits to be recorded; undefined when nothing does. */
  settled(): Promise<void> | undefined
}

/** Builds a acknowledger. `onDone` is told of the results it is done with: recorded, void, or refused for good. */
export function buildAcknowledger(
  deps: AcknowledgerDeps,
  onDone: (attempts: readonly EndedAttempt[]) => void,
): Acknowledger {
  const { clock, logger } = deps
  const waiting: EndedAttempt[] = []
  let recording: Promise<void> | undefined

  async function recordAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, RECORD_BATCH_SIZE)
      try {
        await recordBatch(deps, batch)
        waiting.splice(0, batch.length)
        onDone(batch)
      } catch (error) {
        if (isRefusedForGood(error)) {
          waiting.splice(0, batch.length)
          await recordEach(batch)
        } else {
          logger.error(
            { err: error, attempts: batch.length },
            'attempts not recorded yet: see docs/operations.md, database',
          )
          await clock.sleep(RECORD_RETRY_MS)
        }
      }
    }
    // Said here, in the same step that saw nothing waiting: said later, a result that comes in between would wait unseen.
    recording = undefined
  }

  /** The database does not take one of these, ever. The others must not wait behind it. */
  async function recordEach(batch: readonly EndedAttempt[]): Promise<void> {
    for (const attempt of batch) {
      try {
        await recordBatch(deps, [attempt])
      } catch (error) {
        if (!isRefusedForGood(error)) {
          waiting.push(attempt)
          continue
        }
        logger.error(
          { err: error, dispatch: attempt.id, webhook: attempt.webhook, attempt: attempt.attempt },
          'result of an attempt refused by the database; the dispatch goes on when its lease runs out',
        )
      }
      onDone([attempt])
    }
  }

  return {
    add: (attempt) => {
      waiting.push(attempt)
      recording ??= recordAll()
    },
    settled: () => recording,
  }
}

async function recordBatch(deps: AcknowledgerDeps, batch: readonly EndedAttempt[]): Promise<void> {
  deps.onDispatcherPoint?.('before-record')
  const { recorded, notices } = await inTransaction(deps.db, async (tx) => {
    const result = await recordAttempts(deps, tx, batch)
    deps.onDispatcherPoint?.('during-record')
    return result
  })
  notifyRecorded(deps, recorded, notices)
}

/** Tells the log and the metrics what was recorded. */
export function notifyRecorded(
  deps: Pick<AcknowledgerDeps, 'logger' | 'onRecorded'>,
  recorded: readonly RecordedAttempt[],
  notices: readonly WebhookNotice[],
): void {
  for (const one of recorded) logAttempt(deps.logger, one)
  for (const notice of notices) deps.logger.warn(notice, `${notice.event}: see docs/operations.md, failing webhooks`)
  deps.onRecorded?.(recorded, notices)
}

/** Data the database does not take (class 22) or a rule it breaks (class 23): the same again brings the same answer. */
function isRefusedForGood(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^2[23]/.test(code)
}

/** The one line of an attempt: ids first, the decision included (docs/contract/api.md#log-lines). Never a body or a signature. */
function logAttempt(logger: Logger, { attempt, decision, isRecorded }: RecordedAttempt): void {
  const line = {
    trace_id: attempt.traceId,
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
