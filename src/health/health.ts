import type { Clock } from '../clock.ts'
import { cacheFor } from '../http/cached.ts'
import type { Database } from '../postgres/database.ts'
import { decideProvisioningHealth, readProvisioningFacts } from '../provisioning/provisioning-health.ts'
import type { RealtimeHealth } from '../realtime/realtime-health.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { decideWebhookOutHealth, FACTS_LIFETIME_MS } from './webhook-out.ts'

/** The health of one component, with its facts. */
export interface ComponentHealth {
  component: 'webhook-out' | 'provisioning'
  status: 'operational' | 'degraded'
  checkedAt: Date
  details: object
}

/** Dependencies of the health routes. */
export interface HealthDeps {
  /** The health of outbound webhooks, at most 5 s old. */
  readWebhookOutHealth: () => Promise<ComponentHealth>
  /** The health of realtime publishing, at most 5 s old. */
  readRealtimeHealth: () => Promise<RealtimeHealth>
  /** The health of provisioning, at most 5 s old. */
  readProvisioningHealth: () => Promise<ComponentHealth>
}

/** Checks outbound webhooks at `now`. */
export async function checkWebhookOut(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readWebhookOutFacts(db, now)
  return { component: 'webhook-out', status: decideWebhookOutHealth(details), checkedAt: now, details }
}

/** Checks provisioning at `now`. */
async function checkProvisioning(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readProvisioningFacts(db, now)
  return { component: 'provisioning', status: decideProvisioningHealth(details), checkedAt: now, details }
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
    readProvisioningHealth: cacheFor(clock, FACTS_LIFETIME_MS, () => checkProvisioning(db, new Date(clock.now()))),
  }
}
