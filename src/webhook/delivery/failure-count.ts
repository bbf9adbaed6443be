/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#fixed-constants). */
export const AUTO_DISABLE_AFTER_FAILURES = 20

/** Failed deliveries in a row that warn the other global webhooks. */
const WARN_AT_FAILURES: readonly number[] = [10, 15]

/** `disabled_reason` of an automatic disable (docs/contract/delivery.md#failure-count). */
export const AUTO_DISABLE_REASON = 'consecutive-failures'

/** Facts of a webhook that the failure count reads. */
export interface FailureState {
  isActived: boolean
  consecutiveFailures: number
}

/** Changes of a webhook's failure count that are reported. */
export type FailureNotice = 'webhook.failing' | 'webhook.auto-disable' | 'webhook.recovered'

/** A webhook's failure count after some deliveries. */
export interface FailureDecision {
  consecutiveFailures: number
  /** Whether the 20th failure in a row was reached now. */
  disable: boolean
  notices: FailureNotice[]
}

/**
 * Effect of an ended delivery on the count. A success leaves the failures that ended after it: `left`, 0 unless given.
 */
export type CountStep = 'reset' | 'add' | 'keep' | { left: number }

/** A recorded delivery, as the count sees it. */
export interface CountedEnd {
  endedAt: Date
  failureCount: 'reset' | 'add' | 'keep'
}

/** Earlier recorded deliveries of a webhook that ended after those that are recorded now. */
export interface EarlierEnds {
  /** When the last success ended. */
  lastSuccessAt: Date | null
  /** When failures that counted ended. */
  failuresAt: readonly Date[]
}

/**
 * The steps of deliveries that are recorded now, in the order in which they ended, whatever was recorded before them: a failure
 * adds nothing when a success ended after it, and a success leaves the failures that ended after it. Pure.
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
 * Counts ended deliveries in the order in which they ended (docs/contract/delivery.md#failure-count): any success sets the count to 0, each failed one adds
 * one, the 20th in a row disables. A webhook that is inactive already is not disabled a second time. Pure.
 */
export function countFailures(state: FailureState, ended: readonly CountStep[]): FailureDecision {
  let { consecutiveFailures } = state
  let disable = false
  const notices: FailureNotice[] = []
  for (const attempt of ended) {
    if (attempt === 'reset' || typeof attempt === 'object') {
      const left = attempt === 'reset' ? 0 : Math.min(attempt.left, consecutiveFailures)
      const isRecovered = consecutiveFailures >= WARN_AT_FAILURES[0]! && left < WARN_AT_FAILURES[0]!
      // One that stays disabled has not recovered, though a test of it got through.
      if (isRecovered && state.isActived) notices.push('webhook.recovered')
      consecutiveFailures = left
    } else if (attempt === 'add') {
      consecutiveFailures += 1
      if (WARN_AT_FAILURES.includes(consecutiveFailures)) notices.push('webhook.failing')
      if (consecutiveFailures >= AUTO_DISABLE_AFTER_FAILURES && state.isActived && !disable) {
        disable = true
        notices.push('webhook.auto-disable')
      }
    }
  }
  return { consecutiveFailures, disable, notices }
}
