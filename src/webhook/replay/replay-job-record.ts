import type { Id, WebhookId } from '../../base/id.ts'
import type { ReplayRefusal } from '../ledger/replay.ts'

export type ReplayJobId = Id<'replay job'>

/** Maximum number of rows of one bulk replay (docs/contract/delivery.md#replay). */
export const REPLAY_JOB_ROWS_LIMIT = 10_000

/** Number of skipped rows by reason. */
export type SkipCounts = Partial<Record<SkipReason, number>>

export type SkipReason =
  | ReplayRefusal
  /** The webhook was deleted after the creation of the job. */
  | 'gone'

/** Maximum number of webhooks in a preview, those with the most rows. */
export const PREVIEWED_WEBHOOKS_LIMIT = 50

export interface WebhookPreview {
  webhook: WebhookId
  /** Whether it is active and not deleted; otherwise its rows are skipped. */
  isActive: boolean
  total: number
  /** Rows whose event has arrived. */
  succeeded: number
}

export interface ReplayPreview {
  /** Rows that match the filters: all of them, or the limit of a total and `isMatchedExact` false. */
  matched: number
  isMatchedExact: boolean
  /** Rows of the job. */
  total: number
  wouldReplay: number
  wouldSkip: number
  skippedReasons: SkipCounts
  /** Rows whose event has arrived: their receivers would get it again. */
  succeeded: number
  toInactive: number
  /** The webhooks of the rows, at most `PREVIEWED_WEBHOOKS_LIMIT`, by descending number of rows. */
  byWebhook: WebhookPreview[]
  webhooks: number
}
