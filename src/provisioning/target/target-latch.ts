import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { hasProvisioningWork } from './target.store.ts'

/** Interval at which a process without targets checks for one without a notification. */
export const LATCH_POLL_MS = 30_000

/** Suspends the workers of provisioning while no target exists, so that they send no statements. */
export interface TargetLatch {
  /** Targets have changed, or notifications may have been missed. */
  invalidate(): void
  /** Resolves when a target exists, or work of a deleted one is left, or at the abort. Returns whether it waited. */
  pass(signal: AbortSignal): Promise<boolean>
}

/** Builds the latch. While it is open it checks again only after an invalidation. */
export function buildTargetLatch({ db, clock }: { db: Database; clock: Clock }): TargetLatch {
  let changed = Promise.withResolvers<void>()
  let isOpen = false
  let isAsked = false

  async function ask(): Promise<void> {
    isAsked = true
    try {
      isOpen = await hasProvisioningWork(db)
    } catch (error) {
      isAsked = false
      throw error
    }
  }

  async function wait(invalidated: Promise<void>, signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    await Promise.race([invalidated, clock.sleep(LATCH_POLL_MS, AbortSignal.any([signal, over.signal]))])
    over.abort()
  }

  return {
    invalidate: () => {
      isAsked = false
      changed.resolve()
      changed = Promise.withResolvers()
    },
    pass: async (signal) => {
      for (let hasWaited = false; ; hasWaited = true) {
        const invalidated = changed.promise
        if (!isOpen || !isAsked) await ask()
        if (isOpen || signal.aborted) return hasWaited
        await wait(invalidated, signal)
      }
    },
  }
}
