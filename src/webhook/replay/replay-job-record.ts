import type { AccountId, Id, UserId } from '../../base/id.ts'
import type { JobStatus } from '../../delivery/job/job-state.ts'
import type { ReplayRefusal } from '../ledger/replay.ts'

export type ReplayJobId = Id<'replay job'>

/** A bulk replay: its rows are fixed when it is made. */
export interface ReplayJobRecord {
  id: ReplayJobId
  status: JobStatus
  filters: string[]
  confirmDuplicate: boolean
  /** The accounts to whose rows it is limited; null for a job over all accounts. */
  accounts: AccountId[] | null
  total: number
  /** Rows dealt with: replayed or skipped. They are dealt with in order, so this is also where the job stands. */
  processed: number
  replayed: number
  skipped: number
  skippedReasons: SkipCounts
  /** Rounds that failed one after the other. */
  failures: number
  lastError: string | null
  createdBy: UserId | null
  createdAt: Date
  updatedAt: Date
  endedAt: Date | null
}

/** How many rows were skipped for each reason. */
export type SkipCounts = Partial<Record<SkipReason, number>>

/** Why a row of a job was not replayed. */
export type SkipReason =
  | ReplayRefusal
  /** It was deleted since the job was made. */
  | 'gone'
