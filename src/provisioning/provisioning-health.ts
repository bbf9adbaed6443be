import type { Database } from '../postgres/statement/database.ts'
import { type ProvisioningFacts, selectProvisioningFacts } from './provisioning-health.store.ts'

export { readEndedDeliveries } from './provisioning-health.store.ts'

/** The window in which dead letters count, in milliseconds. */
const WINDOW_MS = 24 * 3_600_000

/** Upper bound of each count: this many, or more. */
const COUNT_LIMIT = 10_000

/** Wait of the oldest due delivery at which the component is degraded: deliveries have stopped, or are far too slow. */
const DEGRADED_AT_LAG_SECONDS = 300

/** Reads the facts as of `now`. */
export function readProvisioningFacts(db: Database, now: Date): Promise<ProvisioningFacts> {
  return selectProvisioningFacts(db, { now, since: new Date(now.getTime() - WINDOW_MS), limit: COUNT_LIMIT })
}

/**
 * Decides the health of provisioning: `operational` or `degraded` (docs/contract/provisioning.md#health-of-provisioning). Any
 * dead letter and any refusal within 24 h degrades it; so does work that waits for five minutes.
 */
export function decideProvisioningHealth(facts: ProvisioningFacts): 'operational' | 'degraded' {
  const { dead_letters_24h: deadLetters, failed_24h: failed } = facts
  const isDegraded = deadLetters > 0 || failed > 0 || facts.oldest_pending_s >= DEGRADED_AT_LAG_SECONDS
  return isDegraded ? 'degraded' : 'operational'
}
