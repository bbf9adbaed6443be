import type { Id } from '../../base/id.ts'
import type { ReplayRefusal } from '../ledger/replay.ts'

export type ReplayJobId = Id<'replay job'>

/** Rows of one bulk replay at most (docs/contract/delivery.md#replay). */
export const REPLAY_JOB_ROWS_LIMIT = 10_000

/** How many rows were skipped for each reason. */
export type SkipCounts = Partial<Record<SkipReason, number>>

/** Why a row of a job was not replayed. */
export type SkipReason =
  | ReplayRefusal
  /** It was deleted since the job was made. */
  | 'gone'

/** Preview of a bulk replay. */
export interface ReplayPreview {
  /** Rows that the filters name: all of them, or the limit of a total and `isMatchedExact` false. */
  matched: number
  isMatchedExact: boolean
  /** Rows that the job would hold. */
  total: number
  wouldReplay: number
  wouldSkip: number
  skippedReasons: SkipCounts
}
