import type { Id } from '../../base/id.ts'

export type JobId = Id<'provisioning job'>

/**
 * `sync` sends every user; `reconcile` those whose state the target has not accepted; `redrive` replays the latest delivery of
 * those whose it failed.
 */
export type JobKind = 'sync' | 'reconcile' | 'redrive'

/** A user as a job finds it. */
export interface UserAtTarget {
  isDeleted: boolean
  /** Deliveries of the user that have not ended. */
  waiting: number
  /** The present state, and what the target has (null: nothing; `deleted`: its end; `unknown` after a failed attempt). */
  digest: string
  deliveredDigest: string | null
}
