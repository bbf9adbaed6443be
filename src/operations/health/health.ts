import { cacheFor } from '../../base/cached.ts'
import type { Clock } from '../../base/clock.ts'
import { decideCellHealth, describeCellHealth } from '../../carriage/cell/cell-health.ts'
import { decideEventLogHealth, readEventLogFacts } from '../../carriage/relay/log-facts.ts'
import { readRefusals } from '../../identity/connection/activity/connection-activity.ts'
import { decideConnectionHealth, readConnectionFacts } from '../../identity/connection/certificate/certificate-end.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { decideProvisioningHealth, readProvisioningFacts } from '../../provisioning/provisioning-health.ts'
import type { RealtimeHealth } from '../../realtime/realtime-health.ts'
import { addSecretFacts, decideSecretHealth, readSecretFacts } from '../stored-secret/secret-health.ts'
import { type CellFacts, listFigures, type ReadCellFacts } from './cell-facts.ts'
import { decideClockHealth, readClockFacts } from './clock-health.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { addWebhookOutFacts, decideWebhookOutHealth, FACTS_LIFETIME_MS } from './webhook-out.ts'

/** The health of one component, with its facts. */
export interface ComponentHealth {
  component: 'webhook-out' | 'provisioning' | 'stored-secrets' | 'clock' | 'connections' | 'event-log' | 'cells'
  status: 'operational' | 'degraded'
  checkedAt: Date
  details: object
}

export interface HealthDeps {
  readWebhookOutHealth: () => Promise<ComponentHealth>
  readRealtimeHealth: () => Promise<RealtimeHealth>
  readProvisioningHealth: () => Promise<ComponentHealth>
  readSecretHealth: () => Promise<ComponentHealth>
  readClockHealth: () => Promise<ComponentHealth>
  readConnectionHealth: () => Promise<ComponentHealth>
  /** The health of the event log, at most 5 s old; undefined without one. */
  readEventLogHealth: (() => Promise<ComponentHealth>) | undefined
  /** The health of cells, at most 5 s old; undefined without any. */
  readCellHealth: () => Promise<ComponentHealth | undefined>
}

const nameMissing = (missing: readonly string[]) => missing.length > 0 && { missing_cells: missing }

/** Checks outbound webhooks at `now`, those of cells included. */
export async function checkWebhookOut(db: Database, now: Date, cells: CellFacts | undefined): Promise<ComponentHealth> {
  const { figures, missing } = listFigures(cells)
  const facts = addWebhookOutFacts(
    await readWebhookOutFacts(db, now),
    figures.map(({ webhookOut }) => webhookOut),
  )
  const details = { ...facts, ...nameMissing(missing) }
  return { component: 'webhook-out', status: decideWebhookOutHealth(facts), checkedAt: now, details }
}

async function checkProvisioning(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readProvisioningFacts(db, now)
  return { component: 'provisioning', status: decideProvisioningHealth(details), checkedAt: now, details }
}

async function checkSecrets(
  db: Database,
  { keyIds, cells, now }: { keyIds: readonly string[]; cells: CellFacts | undefined; now: Date },
): Promise<ComponentHealth> {
  const { figures, missing } = listFigures(cells)
  const facts = addSecretFacts(
    await readSecretFacts(db, keyIds),
    figures.map(({ secrets }) => secrets),
  )
  const details = { ...facts, ...nameMissing(missing) }
  return { component: 'stored-secrets', status: decideSecretHealth(facts), checkedAt: now, details }
}

async function checkClock(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readClockFacts(db, now)
  return { component: 'clock', status: decideClockHealth(details), checkedAt: now, details }
}

async function checkConnections(db: Database, now: Date): Promise<ComponentHealth> {
  const facts = await readConnectionFacts(db, now)
  const details = { ...facts, refusals_today: await readRefusals(db, now) }
  return { component: 'connections', status: decideConnectionHealth(facts), checkedAt: now, details }
}

async function checkEventLog(db: Database, now: Date): Promise<ComponentHealth> {
  const details = await readEventLogFacts(db, now)
  return { component: 'event-log', status: decideEventLogHealth(details), checkedAt: now, details }
}

/** Describes the cells, whose status is at most 5 s old. */
async function checkCells(readCellFacts: ReadCellFacts, now: Date): Promise<ComponentHealth | undefined> {
  const facts = await readCellFacts()
  if (!facts) return undefined
  const details = describeCellHealth(facts.status, (cell) => facts.figures.get(cell)?.storage?.fullInDays)
  return { component: 'cells', status: decideCellHealth(details), checkedAt: now, details }
}

/** Builds the dependencies of the health routes. The routes are public, so all callers of a process share one check in 5 s. */
export function buildHealthDeps(deps: {
  db: Database
  clock: Pick<Clock, 'now'>
  keyIds: readonly string[]
  hasEventLog: boolean
  readRealtimeHealth: HealthDeps['readRealtimeHealth']
  readCellFacts: ReadCellFacts
}): HealthDeps {
  const { db, clock, keyIds, readRealtimeHealth, readCellFacts } = deps
  const cache = (check: (now: Date) => Promise<ComponentHealth>) =>
    cacheFor(clock, FACTS_LIFETIME_MS, () => check(new Date(clock.now())))
  return {
    readRealtimeHealth,
    readWebhookOutHealth: cache(async (now) => checkWebhookOut(db, now, await readCellFacts())),
    readProvisioningHealth: cache((now) => checkProvisioning(db, now)),
    readSecretHealth: cache(async (now) => checkSecrets(db, { keyIds, now, cells: await readCellFacts() })),
    readClockHealth: cache((now) => checkClock(db, now)),
    readCellHealth: () => checkCells(readCellFacts, new Date(clock.now())),
    readConnectionHealth: cache((now) => checkConnections(db, now)),
    readEventLogHealth: deps.hasEventLog ? cache((now) => checkEventLog(db, now)) : undefined,
  }
}
