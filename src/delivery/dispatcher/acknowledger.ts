import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { isDataRefused, isLockTimeout } from '../../postgres/statement/database.ts'
import { type Claim, type DeliveryPolicy, nameClaim, type Work } from '../policy.ts'
import { buildHeldResults, RECORD_RETRY_MS, type Result } from './held-results.ts'

const RECORD_BATCH_SIZE = 500

/** Time in which results are collected for one statement. After a kill these attempts are repeated. */
const COLLECT_MS = 10

/** Time after which a statement no longer delays the results of other groups. */
const SLOW_MS = 250

/** Maximum number of such statements at once: each takes a connection of the workers. */
const SLOW_AT_ONCE = 2

export interface AcknowledgerDeps<Ended extends Claim, Settled> {
  policy: Pick<DeliveryPolicy<Work, Ended, Settled>, 'onSettled' | 'listHeldBack'> & {
    queue: Pick<DeliveryPolicy<Work, Ended, Settled>['queue'], 'settle'>
  }
  clock: Clock
  /** Pause between batches, in real time. It decides nothing. */
  rest?: Clock['sleep']
  logger: Logger
  /** Runs for a result that the database refuses permanently: its claim still exists. */
  onRefused?: (claim: Claim) => void
  /** Crash tests end the process at these. */
  onDispatcherPoint?: (point: 'before-record') => void
}

/** Records ended attempts, all waiting ones at once: under load the batches grow. */
export interface Acknowledger<Ended> {
  /** `group` is that of the attempt. Results of one group are recorded in their order. */
  add(attempt: Ended, group: string): void
  /** Records waiting results without a pause; resolves when none waits any more; undefined when none does. */
  settled(): Promise<void> | undefined
}

/**
 * Builds an acknowledger. `onDone` gets finished results: recorded, void, or refused permanently.
 *
 * Groups share statements. Results that wait for a locked row are recorded separately, with later ones of their groups,
 * so that one group does not delay the others: results that the policy reports as blocked, and those of a statement
 * that is slow or hit its lock timeout.
 */
export function buildAcknowledger<Ended extends Claim, Settled>(
  deps: AcknowledgerDeps<Ended, Settled>,
  onDone: (attempts: readonly Ended[]) => void,
): Acknowledger<Ended> {
  const { clock, logger, policy, rest = clock.sleep } = deps
  let waiting: Result<Ended>[] = []
  let recording: Promise<void> | undefined
  /** Aborted by `settled`: from then on nothing is collected until all is recorded. */
  let collecting = new AbortController()
  const onFreed = (results: readonly Result<Ended>[]) => {
    waiting.push(...results)
    added.resolve()
  }
  const held = buildHeldResults<Ended>({ clock, logger, record, recover, onFreed })

  /** Records results. Returns those that wait for a lock. */
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
    // Set in the same step that found nothing waiting: set later, a result added in between would be missed.
    recording = undefined
    collecting = new AbortController()
  }

  /** Resolved when a result is added while others are recorded separately. */
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

  /** Whether a statement takes so long that others should not wait for it, and another one may run beside it. */
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

  /** Handles a refused batch: drops permanently refused results and records the rest again. */
  async function recover(batch: readonly Result<Ended>[], error: unknown): Promise<void> {
    if (isDataRefused(error)) return recordEach(batch)
    logger.error({ err: error, attempts: batch.length }, 'attempts not recorded yet: see docs/operations.md, database')
    await clock.sleep(RECORD_RETRY_MS)
    waiting.unshift(...batch)
  }

  /** The database refuses one of these permanently. The others must not wait behind it. */
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
        deps.onRefused?.(item.ended)
        onDone([item.ended])
      }
    }
  }

  /** Records the groups of these separately from now on, with their waiting results. */
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
