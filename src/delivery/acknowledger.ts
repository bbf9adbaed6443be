import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { isDataRefused } from '../postgres/database.ts'
import type { Claim, DeliveryPolicy, Work } from './policy.ts'

/** Results recorded at once at most. */
const RECORD_BATCH_SIZE = 500

/**
 * How long results are collected before they are recorded: a statement costs much the same whatever it holds. A process that
 * is killed meanwhile has these attempts made again, as it has those in flight.
 */
const COLLECT_MS = 10

/** How long a result waits before it is recorded again after the database refused. */
const RECORD_RETRY_MS = 250

/** What an acknowledger is built from. */
export interface AcknowledgerDeps<Ended extends Claim, Settled> {
  policy: Pick<DeliveryPolicy<Work, Ended, Settled>, 'onSettled'> & {
    queue: Pick<DeliveryPolicy<Work, Ended, Settled>['queue'], 'settle'>
  }
  clock: Clock
  /** Rests between batches, which decide nothing: real time in the service, whatever its clock. */
  rest?: Clock['sleep']
  logger: Logger
  /** Runs for a result that the database never takes: its claim is still there. */
  onRefused?: () => void
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'before-record') => void
}

/** Records ended attempts as they come, all that wait at once: under load the batches grow by themselves. */
export interface Acknowledger<Ended> {
  add(attempt: Ended): void
  /** Records what waits without a rest; resolves when nothing waits any more, undefined when nothing does. */
  settled(): Promise<void> | undefined
}

/** Builds an acknowledger. `onDone` gets the results it is done with: recorded, void, or refused for good. */
export function buildAcknowledger<Ended extends Claim, Settled>(
  deps: AcknowledgerDeps<Ended, Settled>,
  onDone: (attempts: readonly Ended[]) => void,
): Acknowledger<Ended> {
  const { clock, logger, policy, rest = clock.sleep } = deps
  const waiting: Ended[] = []
  let recording: Promise<void> | undefined
  /** Ended by `settled`: from then on nothing is collected until all is recorded. */
  let collecting = new AbortController()

  async function record(batch: readonly Ended[]): Promise<void> {
    deps.onDispatcherPoint?.('before-record')
    policy.onSettled(await policy.queue.settle(batch))
  }

  async function recordAll(): Promise<void> {
    while (waiting.length > 0) {
      if (waiting.length < RECORD_BATCH_SIZE) await rest(COLLECT_MS, collecting.signal)
      const batch = waiting.slice(0, RECORD_BATCH_SIZE)
      try {
        await record(batch)
        waiting.splice(0, batch.length)
        onDone(batch)
      } catch (error) {
        if (isDataRefused(error)) {
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
    // Set here, in the same step that saw nothing waiting: set later, a result that comes in between would wait unseen.
    recording = undefined
    collecting = new AbortController()
  }

  /** The database does not take one of these, ever. The others must not wait behind it. */
  async function recordEach(batch: readonly Ended[]): Promise<void> {
    for (const attempt of batch) {
      try {
        await record([attempt])
      } catch (error) {
        if (!isDataRefused(error)) {
          waiting.push(attempt)
          continue
        }
        logger.error(
          { err: error, dispatch: attempt.id, fence: attempt.fence },
          'result of an attempt refused by the database, it counts as interrupted: see docs/operations.md, stopping',
        )
        deps.onRefused?.()
      }
      onDone([attempt])
    }
  }

  return {
    add: (attempt) => {
      waiting.push(attempt)
      recording ??= recordAll()
    },
    settled: () => {
      if (recording) collecting.abort()
      return recording
    },
  }
}
