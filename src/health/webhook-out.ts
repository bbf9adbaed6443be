/** Exhausted deliveries in the last 24 h from which on outbound webhooks are `degraded` (docs/contract/delivery.md#fixed-constants). */
const DEGRADED_AT_EXHAUSTED = 10

/** The window of the health component and the dashboard, in milliseconds (docs/contract/delivery.md#fixed-constants). */
export const HEALTH_WINDOW_MS = 24 * 3_600_000

/** How long the oldest due dispatch may wait before the component says so. The dispatcher is down, or far behind. */
const DEGRADED_AT_LAG_SECONDS = 300

/** Where each count of the component ends: this many, or more. */
export const COUNT_LIMIT = 10_000

/** How long the facts are kept in a process, in milliseconds: health and metrics are at most this old. */
export const FACTS_LIFETIME_MS = 5_000

/** What the component looks at. Counts end at `COUNT_LIMIT`. */
export interface WebhookOutFacts {
  exhausted_24h: number
  auto_disabled: number
  /** Due dispatches that wait, and events that wait for their routing. */
  backlog: number
  /** How long the longest due one has waited, in seconds; 0 when none waits. */
  oldest_pending_s: number
}

/**
 * Judges the health of outbound webhooks: `operational` or `degraded`, never `down` (docs/contract/delivery.md#health-of-outbound-webhooks).
 * Ten exhausted deliveries in 24 h or any auto-disabled webhook degrade it; so does work that waits for five minutes.
 */
export function decideWebhookOutHealth(facts: WebhookOutFacts): 'operational' | 'degraded' {
  const isDegraded =
    facts.exhausted_24h >= DEGRADED_AT_EXHAUSTED ||
    facts.auto_disabled > 0 ||
    facts.oldest_pending_s >= DEGRADED_AT_LAG_SECONDS
  return isDegraded ? 'degraded' : 'operational'
}
