import type { Id, UserId } from '../../base/id.ts'
import type { JobStatus } from '../../delivery/job/job-state.ts'
import type { TargetId } from '../target/target.store.ts'

export type JobId = Id<'provisioning job'>

/** `sync` sends every user; `reconcile` those whose state the target has not accepted. */
export type JobKind = 'sync' | 'reconcile'

/** A tracked run through all users for one target. */
export interface JobRecord {
  id: JobId
  target: TargetId
  kind: JobKind
  status: JobStatus
  /** Users when the job was made, the deleted ones included. */
  total: number
  /** Users looked at, in the order of their ids. */
  processed: number
  /** Deliveries written. */
  queued: number
  failures: number
  lastError: string | null
  createdBy: UserId | null
  createdAt: Date
  updatedAt: Date
  endedAt: Date | null
}

/** A user as a job finds it. */
export interface UserAtTarget {
  isDeleted: boolean
  /** Deliveries of the user that have not ended. */
  waiting: number
  /** The present state, and what the target has (null: nothing; `deleted`: its end; `unknown` after a failed attempt). */
  digest: string
  deliveredDigest: string | null
}
