/** Exhausted deliveries in the last 24 h from which on outbound webhooks are `degraded` (docs/contract/delivery.md#fixed-constants). */
const DEGRADED_AT_EXHAUSTED = 10

/** The window of the health component and the dashboard, in milliseconds (docs/contract/delivery.md#fixed-constants). */
export const HEALTH_WINDOW_MS = 24 * 3_600_000

/** Wait of the oldest due dispatch at which the component is degraded: the dispatcher is down or far behind. */
const DEGRADED_AT_LAG_SECONDS = 300

/** Upper bound of each count: this many, or more. */
export const COUNT_LIMIT = 10_000

/** Cache lifetime of the facts in a process, in milliseconds: health and metrics are at most this old. */
export const FACTS_LIFETIME_MS = 5_000

/** The facts of the component. Counts stop at `COUNT_LIMIT`. */
export interface WebhookOutFacts {
  exhausted_24h: number
  auto_disabled: number
  /** Due dispatches and events without routing. */
  backlog: number
  /** The longest wait of these, in seconds; 0 when none waits. */
  oldest_pending_s: number
  /** Due dispatches that wait for the throttle of their webhook; not in `backlog`. */
  throttled: number
  /** The longest wait of these, in seconds; 0 when none waits. */
  oldest_throttled_s: number
}

/** Adds the facts of cells to those of home. Counts end at `COUNT_LIMIT`. Pure. */
export function addWebhookOutFacts(home: WebhookOutFacts, cells: readonly WebhookOutFacts[]): WebhookOutFacts {
  const all = [home, ...cells]
  const sum = (pick: (facts: WebhookOutFacts) => number) =>
    Math.min(
      COUNT_LIMIT,
      all.reduce((count, facts) => count + pick(facts), 0),
    )
  return {
    exhausted_24h: sum((facts) => facts.exhausted_24h),
    auto_disabled: sum((facts) => facts.auto_disabled),
    backlog: sum((facts) => facts.backlog),
    oldest_pending_s: Math.max(...all.map((facts) => facts.oldest_pending_s)),
    throttled: sum((facts) => facts.throttled),
    oldest_throttled_s: Math.max(...all.map((facts) => facts.oldest_throttled_s)),
  }
}

/**
 * Decides the health of outbound webhooks: `operational` or `degraded`, never `down` (docs/contract/delivery.md#health-of-outbound-webhooks).
 * Ten exhausted deliveries in 24 h or any auto-disabled webhook degrade it; so does work that waits for five minutes.
 */
export function decideWebhookOutHealth(
  facts: Omit<WebhookOutFacts, 'throttled' | 'oldest_throttled_s'>,
): 'operational' | 'degraded' {
  const isDegraded =
    facts.exhausted_24h >= DEGRADED_AT_EXHAUSTED ||
    facts.auto_disabled > 0 ||
    facts.oldest_pending_s >= DEGRADED_AT_LAG_SECONDS
  return isDegraded ? 'degraded' : 'operational'
}
