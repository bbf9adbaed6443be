import type { Id } from '../../base/id.ts'

export type JobId = Id<'provisioning job'>

/** `reconcile`: users whose state the target has not accepted. `redrive`: those whose latest delivery failed. */
export type JobKind = 'sync' | 'reconcile' | 'redrive'

/** A user in a job. */
export interface UserAtTarget {
  isDeleted: boolean
  /** Deliveries of the user that have not ended. */
  waiting: number
  /** The current state, and the target's (null: none; `deleted`; `unknown` after a failed attempt). */
  digest: string
  deliveredDigest: string | null
}
