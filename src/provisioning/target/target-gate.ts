import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { hasProvisioningWork } from './target.store.ts'

/** How often a process without targets looks for one that it was not notified of. */
export const GATE_POLL_MS = 30_000

/** Holds the workers of provisioning while there is no target, so that a service that informs nobody asks for nothing. */
export interface TargetGate {
  /** Takes the note of a change of targets, or that notes may have been missed. */
  note(): void
  /** Resolves when there is a target, or work that a deleted one left, or at the abort. Returns whether it had to wait. */
  pass(signal: AbortSignal): Promise<boolean>
}

/** Builds the gate. While it is open it asks again only after a note. */
export function buildTargetGate({ db, clock }: { db: Database; clock: Clock }): TargetGate {
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

  async function wait(noted: Promise<void>, signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    await Promise.race([noted, clock.sleep(GATE_POLL_MS, AbortSignal.any([signal, over.signal]))])
    over.abort()
  }

  return {
    note: () => {
      isAsked = false
      changed.resolve()
      changed = Promise.withResolvers()
    },
    pass: async (signal) => {
      for (let hasWaited = false; ; hasWaited = true) {
        const noted = changed.promise
        if (!isOpen || !isAsked) await ask()
        if (isOpen || signal.aborted) return hasWaited
        await wait(noted, signal)
      }
    },
  }
}
