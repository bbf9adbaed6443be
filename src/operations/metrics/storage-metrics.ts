import { Registry } from '@prometheus-io/client'
import { cacheFor } from '../../base/cached.ts'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type DiskSource, readStorageForecast, type StorageRetention } from '../storage/storage.ts'
import { buildInstruments } from './instruments.ts'

/** Source of the database's disk space, and the retention of its rows. */
export interface StorageMetricsDeps {
  disk: DiskSource
  retention: StorageRetention
}

/** PostgreSQL looks at every file of the database for its size. */
const LIFETIME_MS = 60_000

const DAY_SECONDS = 24 * 3_600

/** The metrics of the size of the database and of its disk, at most a minute old. */
export function buildStorageMetrics(db: Database, clock: Clock, deps: StorageMetricsDeps): () => Promise<string> {
  const registry = new Registry()
  const metrics = buildInstruments(registry)
  const size = metrics.gauge('database_size_bytes', 'Disk space used by the database.')
  // With a label, so that it is omitted while unknown.
  const source = deps.disk.diskBytes === undefined ? 'disk' : 'setting'
  const free = metrics.gauge(
    'database_disk_free_bytes',
    'Disk space left for the database: on the disk of the embedded one, or of DATABASE_DISK_BYTES.',
    ['source'],
  )
  const full = metrics.gauge(
    'database_disk_full_seconds',
    'Seconds until no disk space is left, at the growth of the last days; +Inf without growth or without data.',
  )
  return cacheFor(clock, LIFETIME_MS, async () => {
    const forecast = await readStorageForecast(db, { now: new Date(clock.now()), ...deps })
    const { databaseBytes, freeBytes, fullInDays } = forecast
    size.set(databaseBytes)
    free.reset()
    if (freeBytes !== undefined) free.set({ source }, freeBytes)
    full.set((fullInDays ?? Number.POSITIVE_INFINITY) * DAY_SECONDS)
    return registry.metrics()
  })
}
