import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { isLockTimeout } from '../../postgres/statement/database.ts'
import type { Claim } from '../policy.ts'

/** Interval between tries to record a result after a refusal or a lock timeout. */
export const RECORD_RETRY_MS = 250

/**
 * Tries after which a line reports blocked results: 5 s and the waits for locks; processes block each other for less.
 */
const TRIES_BETWEEN_LINES = 20

const GROUPS_IN_LOG = 3

export interface Result<Ended> {
  ended: Ended
  group: string
}

export interface HeldResultsDeps<Ended> {
  clock: Clock
  logger: Logger
  record: (batch: readonly Result<Ended>[]) => Promise<Result<Ended>[]>
  /** Handles results that the database refused with an error other than a lock timeout. */
  recover: (batch: readonly Result<Ended>[], error: unknown) => Promise<void>
  /** Results that rejoin the common batches. */
  onFreed: (results: readonly Result<Ended>[]) => void
}

/** Results of groups blocked by a locked row: recorded separately, with later ones of their groups. */
export interface HeldResults<Ended> {
  /** Separates the groups of these results until all are recorded. `recorded` is the result of their statement. */
  hold(batch: readonly Result<Ended>[], recorded: Promise<Result<Ended>[]>): void
  /** Takes a result whose group is separate; false for any other. */
  take(result: Result<Ended>): boolean
  /** The running statements and waits. */
  underWay(): ReadonlySet<Promise<void>>
}

/** Builds it. A group is separate from `hold` until a statement has recorded all of its results. */
export function buildHeldResults<Ended extends Claim>(deps: HeldResultsDeps<Ended>): HeldResults<Ended> {
  const { clock, logger, record, recover } = deps
  /** Separate groups, with their later results. */
  const apart = new Map<string, Result<Ended>[]>()
  const underWay = new Set<Promise<void>>()

  async function recordApart(
    batch: readonly Result<Ended>[],
    groups: ReadonlySet<string>,
    recorded: Promise<Result<Ended>[]>,
  ): Promise<void> {
    let held = await recorded.catch((error: unknown) =>
      isLockTimeout(error) ? [...batch] : recover(batch, error).then(() => []),
    )
    free([...groups].filter((group) => !held.some((item) => item.group === group)))
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

  /** Records the results of a group. Returns those still blocked; without any the group rejoins the others. */
  async function recordGroup(group: string, results: readonly Result<Ended>[]): Promise<Result<Ended>[]> {
    const batch = [...results, ...(apart.get(group)?.splice(0) ?? [])]
    try {
      const heldBack = await record(batch)
      if (heldBack.length > 0) return heldBack
    } catch (error) {
      if (isLockTimeout(error)) return batch
      await recover(batch, error)
    }
    free([group])
    return []
  }

  function free(groups: readonly string[]): void {
    const freed = groups.flatMap((group) => apart.get(group) ?? [])
    for (const group of groups) apart.delete(group)
    deps.onFreed(freed)
  }

  return {
    hold: (batch, recorded) => {
      const groups = new Set(batch.map(({ group }) => group))
      for (const group of groups) if (!apart.has(group)) apart.set(group, [])
      const work = recordApart(batch, groups, recorded)
      underWay.add(work)
      void work.finally(() => underWay.delete(work))
    },
    take: (result) => {
      const later = apart.get(result.group)
      later?.push(result)
      return later !== undefined
    },
    underWay: () => underWay,
  }
}
