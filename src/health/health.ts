import type { Clock } from '../clock.ts'
import { cacheFor } from '../http/cached.ts'
import type { Database } from '../postgres/database.ts'
import type { RealtimeHealth } from '../realtime/realtime-health.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { decideWebhookOutHealth, FACTS_LIFETIME_MS, type WebhookOutFacts } from './webhook-out.ts'

/** The health of one component, with its facts. */
export interface ComponentHealth {
  component: 'webhook-out'
  status: 'operational' | 'degraded'
  checkedAt: Date
  details: WebhookOutFacts
}

/** Dependencies of the health routes. */
export interface HealthDeps {
  /** The health of outbound webhooks, at most 5 s old. */
  readWebhookOutHealth: () => Promise<ComponentHealth>
  /** The health of realtime publishing, at most 5 s old. */
  readRealtimeHealth: () => Promise<RealtimeHealth>
}

/** Checks outbound webhooks at `now`. */
export async function checkWebhookOut(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readWebhookOutFacts(db, now)
  return { component: 'webhook-out', status: decideWebhookOutHealth(details), checkedAt: now, details }
}

/** Builds the dependencies of the health routes. The routes are public, so all callers of a process share one check in 5 s. */
export function buildHealthDeps(
  db: Database,
  clock: Pick<Clock, 'now'>,
  readRealtimeHealth: HealthDeps['readRealtimeHealth'],
): HealthDeps {
  return {
    readRealtimeHealth,
    readWebhookOutHealth: cacheFor(clock, FACTS_LIFETIME_MS, () => checkWebhookOut(db, new Date(clock.now()))),
  }
}
