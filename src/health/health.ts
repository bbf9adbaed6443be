import type { Clock } from '../clock.ts'
import { cacheFor } from '../http/cached.ts'
import type { Database } from '../postgres/database.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { decideWebhookOutHealth, FACTS_LIFETIME_MS, type WebhookOutFacts } from './webhook-out.ts'

/** The health of one component, with what it was decided by. */
export interface ComponentHealth {
  component: 'webhook-out'
  status: 'operational' | 'degraded'
  checkedAt: Date
  details: WebhookOutFacts
}

/** What the health routes use. */
export interface HealthDeps {
  /** The health of outbound webhooks, at most 5 s old. */
  readWebhookOutHealth: () => Promise<ComponentHealth>
}

/** Checks outbound webhooks as they are at `now`. */
export async function checkWebhookOut(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readWebhookOutFacts(db, now)
  return { component: 'webhook-out', status: decideWebhookOutHealth(details), checkedAt: now, details }
}

/** What the health routes of one process use: the routes are public, so all their callers share one check in 5 s. */
export function buildHealthDeps(db: Database, clock: Pick<Clock, 'now'>): HealthDeps {
  return {
    readWebhookOutHealth: cacheFor(clock, FACTS_LIFETIME_MS, () => checkWebhookOut(db, new Date(clock.now()))),
  }
}
