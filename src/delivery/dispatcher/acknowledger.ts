import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { isDataRefused, isLockTimeout } from '../../postgres/statement/database.ts'
import { type Claim, type DeliveryPolicy, nameClaim, type Work } from '../policy.ts'
import { buildHeldResults, RECORD_RETRY_MS, type Result } from './held-results.ts'

/** Results recorded at once at most. */
const RECORD_BATCH_SIZE = 500

/**
 * How long results are collected before they are recorded: a statement costs much the same whatever it holds. A process that
 * is killed meanwhile has these attempts made again, as it has those in flight.
 */
const COLLECT_MS = 10

/** After how long a statement no longer holds back the results of groups that it does not record. */
const SLOW_MS = 250

/** Such statements at once: each holds a connection of the workers. */
const SLOW_AT_ONCE = 2

/** Dependencies of an acknowledger. */
export interface AcknowledgerDeps<Ended extends Claim, Settled> {
  policy: Pick<DeliveryPolicy<Work, Ended, Settled>, 'onSettled' | 'listHeldBack'> & {
    queue: Pick<DeliveryPolicy<Work, Ended, Settled>['queue'], 'settle'>
  }
  clock: Clock
  /** Pause between batches, in real time. It decides nothing. */
  rest?: Clock['sleep']
  logger: Logger
  /** Runs for a result that the database never takes: its claim is still there. */
  onRefused?: () => void
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'before-record') => void
}

/** Records ended attempts as they come, all that wait at once: under load the batches grow by themselves. */
export interface Acknowledger<Ended> {
  /** `group`: what the attempt was grouped by. Results of one group are recorded in their order. */
  add(attempt: Ended, group: string): void
  /** Records what waits without a rest; resolves when nothing waits any more, undefined when nothing does. */
  settled(): Promise<void> | undefined
}

/**
 * Builds an acknowledger. `onDone` gets the results it is done with: recorded, void, or refused for good.
 *
 * Groups share statements. What a row that somebody has locked holds back is recorded apart, with all that comes of its
 * groups meanwhile, so that one group does not hold back the others: results that the policy lists as held back, and those of
 * a statement that is slow or that ended by its lock timeout.
 */
export function buildAcknowledger<Ended extends Claim, Settled>(
  deps: AcknowledgerDeps<Ended, Settled>,
  onDone: (attempts: readonly Ended[]) => void,
): Acknowledger<Ended> {
  const { clock, logger, policy, rest = clock.sleep } = deps
  let waiting: Result<Ended>[] = []
  let recording: Promise<void> | undefined
  /** Ended by `settled`: from then on nothing is collected until all is recorded. */
  let collecting = new AbortController()
  const onFreed = (results: readonly Result<Ended>[]) => {
    waiting.push(...results)
    added.resolve()
  }
  const held = buildHeldResults<Ended>({ clock, logger, record, recover, onFreed })

  /** Records results. Returns those that others hold back. */
  async function record(batch: readonly Result<Ended>[]): Promise<Result<Ended>[]> {
    deps.onDispatcherPoint?.('before-record')
    const settled = await policy.queue.settle(batch.map(({ ended }) => ended))
    policy.onSettled(settled)
    const heldBack = new Set((policy.listHeldBack?.(settled) ?? []).map(nameClaim))
    const isHeldBack = ({ ended }: Result<Ended>) => heldBack.has(nameClaim(ended))
    onDone(batch.filter((entry) => !isHeldBack(entry)).map(({ ended }) => ended))
    return heldBack.size === 0 ? [] : batch.filter(isHeldBack)
  }

  async function recordAll(): Promise<void> {
    for (;;) {
      while (waiting.length > 0) await recordSome()
      if (held.underWay().size === 0) break
      await Promise.race([...held.underWay(), added.promise])
      added = Promise.withResolvers()
    }
    // Set here, in the same step that saw nothing waiting: set later, a result that comes in between would wait unseen.
    recording = undefined
    collecting = new AbortController()
  }

  /** Resolved when a result comes while others are recorded apart. */
  let added = Promise.withResolvers<void>()

  async function recordSome(): Promise<void> {
    if (waiting.length < RECORD_BATCH_SIZE) await rest(COLLECT_MS, collecting.signal)
    const batch = waiting.splice(0, RECORD_BATCH_SIZE)
    const recorded = record(batch)
    if (await isSlow(recorded)) return setApart(batch, recorded)
    try {
      const heldBack = await recorded
      if (heldBack.length > 0) setApart(heldBack, Promise.resolve(heldBack))
    } catch (error) {
      if (isLockTimeout(error)) setApart(batch, recorded)
      else await recover(batch, error)
    }
  }

  /** Whether a statement takes so long that others should not wait for it, and there is room to let it go on apart. */
  async function isSlow(recorded: Promise<unknown>): Promise<boolean> {
    const over = new AbortController()
    const ended = recorded.then(
      () => false,
      () => false,
    )
    const slow = rest(SLOW_MS, over.signal).then(() => !over.signal.aborted)
    const isLate = await Promise.race([ended, slow])
    over.abort('over')
    return isLate && held.underWay().size < SLOW_AT_ONCE
  }

  /** The database refused a batch: what it never takes is left out, the rest is recorded again. */
  async function recover(batch: readonly Result<Ended>[], error: unknown): Promise<void> {
    if (isDataRefused(error)) return recordEach(batch)
    logger.error({ err: error, attempts: batch.length }, 'attempts not recorded yet: see docs/operations.md, database')
    await clock.sleep(RECORD_RETRY_MS)
    waiting.unshift(...batch)
  }

  /** The database does not take one of these, ever. The others must not wait behind it. */
  async function recordEach(batch: readonly Result<Ended>[]): Promise<void> {
    for (const item of batch) {
      try {
        const heldBack = await record([item])
        if (heldBack.length > 0) waiting.push(item)
      } catch (error) {
        if (!isDataRefused(error)) {
          waiting.push(item)
          continue
        }
        logger.error(
          { err: error, dispatch: item.ended.id, fence: item.ended.fence },
          'result of an attempt refused by the database, it counts as interrupted: see docs/operations.md, stopping',
        )
        deps.onRefused?.()
        onDone([item.ended])
      }
    }
  }

  /** From now on the groups of these are recorded apart, with what waits of them. */
  function setApart(batch: readonly Result<Ended>[], recorded: Promise<Result<Ended>[]>): void {
    held.hold(batch, recorded)
    waiting = waiting.filter((waiter) => !held.take(waiter))
  }

  return {
    add: (ended, group) => {
      const result = { ended, group }
      if (!held.take(result)) waiting.push(result)
      added.resolve()
      recording ??= recordAll()
    },
    settled: () => {
      if (recording) collecting.abort()
      return recording
    },
  }
}
