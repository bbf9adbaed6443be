/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#fixed-constants). */
export const AUTO_DISABLE_AFTER_FAILURES = 20

/** Failed deliveries in a row that warn the other global webhooks. */
const WARN_AT_FAILURES: readonly number[] = [10, 15]

/** `disabled_reason` of an automatic disable (docs/contract/delivery.md#failure-count). */
export const AUTO_DISABLE_REASON = 'consecutive-failures'

/** What the failure count looks at in a webhook. */
export interface FailureState {
  isActived: boolean
  consecutiveFailures: number
}

/** What happened to a webhook's failure count that others should hear of. */
export type FailureNotice = 'webhook.failing' | 'webhook.auto-disable' | 'webhook.recovered'

/** A webhook's failure count after some deliveries. */
export interface FailureDecision {
  consecutiveFailures: number
  /** Whether the 20th failure in a row was reached now. */
  disable: boolean
  notices: FailureNotice[]
}

/**
 * Counts ended deliveries in the order in which they ended (docs/contract/delivery.md#failure-count): any success sets the count to 0, each failed one adds
 * one, the 20th in a row disables. A webhook that is inactive already is not disabled a second time. Pure.
 */
export function countFailures(state: FailureState, ended: readonly ('reset' | 'add' | 'keep')[]): FailureDecision {
  let { consecutiveFailures } = state
  let disable = false
  const notices: FailureNotice[] = []
  for (const one of ended) {
    if (one === 'reset') {
      // One that stays disabled has not recovered, though a test of it got through.
      if (consecutiveFailures >= WARN_AT_FAILURES[0]! && state.isActived) notices.push('webhook.recovered')
      consecutiveFailures = 0
    } else if (one === 'add') {
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
