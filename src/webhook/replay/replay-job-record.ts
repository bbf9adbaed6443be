import type { Id, WebhookId } from '../../base/id.ts'
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

/** Webhooks that a preview lists at most, those with the most rows. */
export const PREVIEWED_WEBHOOKS_LIMIT = 50

/** What a bulk replay would hold for one webhook. */
export interface WebhookPreview {
  webhook: WebhookId
  /** Whether it is active and not deleted: rows of others are skipped. */
  isActive: boolean
  total: number
  /** Rows whose event has arrived. */
  succeeded: number
}

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
  /** Rows whose event has arrived: their receivers would get it once more. */
  succeeded: number
  /** Rows of webhooks that are inactive or deleted. */
  toInactive: number
  /** The webhooks of the rows, `PREVIEWED_WEBHOOKS_LIMIT` at most, the one with the most rows first. */
  byWebhook: WebhookPreview[]
  webhooks: number
}
