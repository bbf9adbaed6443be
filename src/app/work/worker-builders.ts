import { mayDelete } from '../../base/database-clock.ts'
import type { Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import { type KeptLease, keepRenewed } from '../../delivery/lease-timer.ts'
import { buildWorkerLease } from '../../delivery/worker-lease.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import { buildRealtimeParts, type RealtimeParts } from '../part/realtime-parts.ts'
import { buildMaintenance, type Maintenance } from './maintenance.ts'
import type { WorkerParts } from './worker-parts.ts'

/** Builds the maintenance of a database. */
export function buildAppMaintenance(parts: WorkerParts, { countSwept }: Metrics): Maintenance {
  const { config, clock, time, logger, keyring, workerId } = parts
  const { db } = parts.maintenanceDatabase ?? parts.database
  const sweeping = { isTrusted: () => mayDelete(time), onSwept: countSwept }
  return buildMaintenance({ db, clock, logger, config, keyring, workerId, ...sweeping })
}

/** The lease has a connection of its own: its renewal must not wait behind the statements of the workers. */
export function buildKeptLease(parts: WorkerParts, hasLock: () => boolean): KeptLease {
  const { clock, time, logger, workerId } = parts
  const { db } = parts.leaseDatabase ?? parts.database
  return keepRenewed(buildWorkerLease({ db, clock, time, workerId, hasLock }), { clock, logger })
}

/** Starts what publishes the realtime messages of a database. */
export function startRealtime(
  realtime: RealtimeParts,
  dispatcher: Dispatcher | undefined,
  running: Promise<void>[],
): void {
  realtime.announce()
  if (dispatcher) running.push(dispatcher.run())
  if (realtime.watch) running.push(realtime.watch.run())
}

/** Builds realtime publishing of a database. */
export function buildAppRealtime(parts: WorkerParts, metrics: Metrics, onRecovered: () => void): RealtimeParts {
  const { config, database, clock, logger, workerId, onCrashPoint } = parts
  return buildRealtimeParts({
    ...{ config, clock, logger, workerId, onRecovered },
    db: database.db,
    requestDb: parts.requestDatabase.db,
    metrics: metrics.realtime,
    embedded: parts.embeddedRealtime,
    ca: parts.ca,
    onOwnFault: metrics.countOwnFault,
    ...(onCrashPoint && { onPoint: () => onCrashPoint('after-publish') }),
  })
}
