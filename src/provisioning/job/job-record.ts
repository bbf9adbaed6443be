import type { Id } from '../../base/id.ts'

export type JobId = Id<'provisioning job'>

/** `sync` sends every user; `reconcile` those whose state the target has not accepted. */
export type JobKind = 'sync' | 'reconcile'

/**
 * The states of a job and their moves:
 *
 *   running --- the last user looked at ---> done
 *   running --- pause ---> paused --- resume ---> running
 *   running, paused, failed --- cancel, or the target is deleted ---> cancelled
 *   running --- several rounds failed in a row ---> failed --- resume ---> running
 */
export type JobStatus = 'running' | 'paused' | 'done' | 'cancelled' | 'failed'

/** A user as a job finds it. */
export interface UserAtTarget {
  isDeleted: boolean
  /** Deliveries of the user that have not ended. */
  waiting: number
  /** The present state, and what the target has (null: nothing; `deleted`: its end; `unknown` after a failed attempt). */
  digest: string
  deliveredDigest: string | null
}
