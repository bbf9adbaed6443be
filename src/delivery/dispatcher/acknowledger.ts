import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { isDataRefused, isLockTimeout } from '../../postgres/statement/database.ts'
import { type Claim, type DeliveryPolicy, nameClaim, type Work } from '../policy.ts'

/** Results recorded at once at most. */
const RECORD_BATCH_SIZE = 500

/**
 * How long results are collected before they are recorded: a statement costs much the same whatever it holds. A process that
 * is killed meanwhile has these attempts made again, as it has those in flight.
 */
const COLLECT_MS = 10

/** How long a result waits before it is recorded again after the database refused, or others held it back. */
const RECORD_RETRY_MS = 250

/** After how long a statement no longer holds back the results of groups that it does not record. */
const SLOW_MS = 250

/** Such statements at once: each holds a connection of the workers. */
const SLOW_AT_ONCE = 2

/** Tries after which a line says what is held back: 5 s, and the waits for locks. Two processes hold each other back for less. */
const TRIES_BETWEEN_LINES = 20

/** Groups that such lines name. */
const GROUPS_IN_LOG = 3

/** What an acknowledger is built from. */
export interface AcknowledgerDeps<Ended extends Claim, Settled> {
  policy: Pick<DeliveryPolicy<Work, Ended, Settled>, 'onSettled' | 'listHeldBack'> & {
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
  /** `group`: what the attempt was grouped by. Results of one group are recorded in their order. */
  add(attempt: Ended, group: string): void
  /** Records what waits without a rest; resolves when nothing waits any more, undefined when nothing does. */
  settled(): Promise<void> | undefined
}

/** An ended attempt with its group. */
interface Result<Ended> {
  ended: Ended
  group: string
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
  /** Groups that are recorded apart, with what came of them meanwhile. */
  const apart = new Map<string, Result<Ended>[]>()
  /** What is under way apart. */
  const aside = new Set<Promise<void>>()
  let recording: Promise<void> | undefined
  /** Ended by `settled`: from then on nothing is collected until all is recorded. */
  let collecting = new AbortController()

  /** Records results. Returns those that others hold back. */
  async function record(batch: readonly Result<Ended>[]): Promise<Result<Ended>[]> {
    deps.onDispatcherPoint?.('before-record')
    const settled = await policy.queue.settle(batch.map(({ ended }) => ended))
    policy.onSettled(settled)
    const heldBack = new Set((policy.listHeldBack?.(settled) ?? []).map(nameClaim))
    const isHeldBack = ({ ended }: Result<Ended>) => heldBack.has(nameClaim(ended))
    onDone(batch.filter((one) => !isHeldBack(one)).map(({ ended }) => ended))
    return heldBack.size === 0 ? [] : batch.filter(isHeldBack)
  }

  async function recordAll(): Promise<void> {
    for (;;) {
      while (waiting.length > 0) await recordSome()
      if (aside.size === 0) break
      await Promise.race([...aside, added.promise])
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
    return isLate && aside.size < SLOW_AT_ONCE
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
    for (const one of batch) {
      try {
        const heldBack = await record([one])
        if (heldBack.length > 0) waiting.push(one)
      } catch (error) {
        if (!isDataRefused(error)) {
          waiting.push(one)
          continue
        }
        logger.error(
          { err: error, dispatch: one.ended.id, fence: one.ended.fence },
          'result of an attempt refused by the database, it counts as interrupted: see docs/operations.md, stopping',
        )
        deps.onRefused?.()
        onDone([one.ended])
      }
    }
  }

  /** From now on the groups of these are recorded apart, until all of them is. */
  function setApart(batch: readonly Result<Ended>[], recorded: Promise<Result<Ended>[]>): void {
    const groups = new Set(batch.map(({ group }) => group))
    for (const group of groups) if (!apart.has(group)) apart.set(group, [])
    for (const one of waiting) apart.get(one.group)?.push(one)
    waiting = waiting.filter(({ group }) => !apart.has(group))
    const work = recordApart(batch, groups, recorded)
    aside.add(work)
    void work.finally(() => aside.delete(work))
  }

  async function recordApart(
    batch: readonly Result<Ended>[],
    groups: ReadonlySet<string>,
    recorded: Promise<Result<Ended>[]>,
  ): Promise<void> {
    let held = await recorded.catch((error: unknown) =>
      isLockTimeout(error) ? [...batch] : recover(batch, error).then(() => []),
    )
    leave([...groups].filter((group) => !held.some((one) => one.group === group)))
    for (let tries = 1; held.length > 0; tries += 1) {
      await clock.sleep(RECORD_RETRY_MS)
      const byGroup = Map.groupBy(held, ({ group }) => group)
      held = []
      for (const [group, results] of byGroup) held.push(...(await recordGroup(group, results)))
      if (tries % TRIES_BETWEEN_LINES === 0) logHeld(held)
    }
  }

  function logHeld(held: readonly Result<Ended>[]): void {
    const groups = new Set(held.map(({ group }) => group))
    for (const group of [...groups].slice(0, GROUPS_IN_LOG))
      logger.warn({ group, attempts: held.length }, 'results wait for a lock: see docs/operations.md, locks')
  }

  /** Records what there is of a group. Returns what is still held back; without any the group is apart no more. */
  async function recordGroup(group: string, results: readonly Result<Ended>[]): Promise<Result<Ended>[]> {
    const batch = [...results, ...(apart.get(group)?.splice(0) ?? [])]
    try {
      const heldBack = await record(batch)
      if (heldBack.length > 0) return heldBack
    } catch (error) {
      if (isLockTimeout(error)) return batch
      await recover(batch, error)
    }
    leave([group])
    return []
  }

  /** The groups are recorded with the others again. */
  function leave(groups: readonly string[]): void {
    for (const group of groups) {
      waiting.push(...(apart.get(group) ?? []))
      apart.delete(group)
    }
    added.resolve()
  }

  return {
    add: (ended, group) => {
      const later = apart.get(group)
      if (later) later.push({ ended, group })
      else waiting.push({ ended, group })
      added.resolve()
      recording ??= recordAll()
    },
    settled: () => {
      if (recording) collecting.abort()
      return recording
    },
  }
}
