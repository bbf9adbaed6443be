import type { MailKind } from '../mail/notice.ts'

/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#fixed-constants). */
export const AUTO_DISABLE_AFTER_FAILURES = 20

/** Failed deliveries in a row that warn the other global webhooks. */
const WARN_AT_FAILURES: readonly number[] = [10, 15]

/** Failed deliveries in a row of which the users of a webhook get a mail (docs/contract/delivery.md#mails). */
const MAIL_AT_FAILURES = 15

/** `disabled_reason` of an automatic disable (docs/contract/delivery.md#failure-count). */
export const AUTO_DISABLE_REASON = 'consecutive-failures'

export interface FailureState {
  isActived: boolean
  consecutiveFailures: number
}

/** Reported changes of a webhook's failure count. */
export type FailureNotice = 'webhook.failing' | 'webhook.auto-disable' | 'webhook.recovered'

export interface FailureDecision {
  consecutiveFailures: number
  /** Whether this was the 20th failure in a row. */
  disable: boolean
  notices: FailureNotice[]
  /** Notices for mails, in their order. */
  mails: MailKind[]
}

/** Effect of an ended delivery on the count. A success keeps the failures that ended after it: `left`, default 0. */
export type CountStep = 'reset' | 'add' | 'keep' | { left: number }

/** A recorded delivery, for the count. */
export interface CountedEnd {
  endedAt: Date
  failureCount: 'reset' | 'add' | 'keep'
}

/** Previously recorded deliveries of a webhook that ended after those recorded now. */
export interface EarlierEnds {
  /** End of the last success. */
  lastSuccessAt: Date | null
  /** Ends of counted failures. */
  failuresAt: readonly Date[]
}

/**
 * The steps of the deliveries recorded now, in the order of their ends, which may not be that of their records: a
 * failure adds nothing when a success ended after it, and a success keeps the failures that ended after it. Pure.
 */
export function orderSteps(recorded: readonly CountedEnd[], earlier: EarlierEnds): CountStep[] {
  const inOrder = [...recorded].sort((a, b) => a.endedAt.getTime() - b.endedAt.getTime())
  return inOrder.map(({ endedAt, failureCount }) => {
    const isBehindSuccess = earlier.lastSuccessAt !== null && earlier.lastSuccessAt > endedAt
    if (failureCount === 'add') return isBehindSuccess ? 'keep' : 'add'
    if (failureCount === 'keep') return 'keep'
    return { left: earlier.failuresAt.filter((at) => at > endedAt).length }
  })
}

/**
 * Counts ended deliveries in the order in which they ended (docs/contract/delivery.md#failure-count): any success sets
 * the count to 0, each failed one adds one, the 20th in a row disables. An inactive webhook causes no notice and no mail.
 * Pure.
 */
export function countFailures(state: FailureState, ended: readonly CountStep[]): FailureDecision {
  let { consecutiveFailures } = state
  let disable = false
  const notices: FailureNotice[] = []
  const mails: MailKind[] = []
  /** An inactive webhook fails no further by itself, and has not recovered by a successful test. */
  const isTold = () => state.isActived && !disable
  for (const attempt of ended) {
    if (attempt === 'reset' || typeof attempt === 'object') {
      const left = attempt === 'reset' ? 0 : Math.min(attempt.left, consecutiveFailures)
      const isRecovered = consecutiveFailures >= WARN_AT_FAILURES[0]! && left < WARN_AT_FAILURES[0]!
      if (isRecovered && isTold()) {
        notices.push('webhook.recovered')
        mails.push('recovered')
      }
      consecutiveFailures = left
    } else if (attempt === 'add') {
      consecutiveFailures += 1
      if (WARN_AT_FAILURES.includes(consecutiveFailures) && isTold()) notices.push('webhook.failing')
      if (consecutiveFailures === MAIL_AT_FAILURES && isTold()) mails.push('failing')
      if (consecutiveFailures >= AUTO_DISABLE_AFTER_FAILURES && isTold()) {
        disable = true
        notices.push('webhook.auto-disable')
        mails.push('disabled')
      }
    }
  }
  return { consecutiveFailures, disable, notices, mails }
}
