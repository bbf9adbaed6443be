import { statfs } from 'node:fs/promises'
import type { Database } from '../../postgres/statement/database.ts'
import { forecastFullDisk, type KeptRows } from './disk-forecast.ts'
import { readStorageFacts, type StorageFacts } from './storage.store.ts'

/** Fewer events, or a shorter time, say nothing of what a day brings. */
const LEAST_EVENTS = 1_000
const LEAST_DAYS = 1 / 24

/** Source of the database's disk space. */
export interface DiskSource {
  /** The directory of the embedded PostgreSQL; undefined for another one, whose disk the service does not see. */
  dataDir: string | undefined
  /** `DATABASE_DISK_BYTES`: space available to the database. */
  diskBytes: number | undefined
}

/** Retention in days; 0: forever. */
export interface StorageRetention {
  webhookLedgerRetentionDays: number
  auditRetentionDays: number
}

/** The size of the database and where it leads. */
export interface StorageForecast {
  databaseBytes: number
  freeBytes: number | undefined
  /** Bytes of an event with its deliveries and attempts; undefined while too few are stored. */
  bytesPerEvent: number | undefined
  /** Daily growth over the last days; undefined with `bytesPerEvent`. */
  growthPerDay: number | undefined
  /** The days until the disk is full; null when it is not, because retention keeps up; undefined where that is not known. */
  fullInDays: number | null | undefined
}

/** Evaluates the facts. Pure. */
export function buildStorageForecast(
  facts: StorageFacts,
  { freeBytes, retention }: { freeBytes: number | undefined; retention: StorageRetention },
): StorageForecast {
  const { databaseBytes, ledgerBytes, events, ledgerDays, recentEvents, recentDays, auditBytes, auditDays } = facts
  const isKnown = events >= LEAST_EVENTS && recentDays >= LEAST_DAYS
  const bytesPerEvent = isKnown ? ledgerBytes / events : undefined
  if (bytesPerEvent === undefined)
    return { databaseBytes, freeBytes, bytesPerEvent, growthPerDay: undefined, fullInDays: undefined }
  const ofLedger = (bytesPerEvent * recentEvents) / recentDays
  const ofAudit = auditDays >= LEAST_DAYS ? auditBytes / auditDays : 0
  const kept: KeptRows[] = [
    {
      bytes: ledgerBytes,
      ageDays: ledgerDays,
      bytesPerDay: ofLedger,
      retentionDays: retention.webhookLedgerRetentionDays,
    },
    { bytes: auditBytes, ageDays: auditDays, bytesPerDay: ofAudit, retentionDays: retention.auditRetentionDays },
  ]
  const fullInDays = freeBytes === undefined ? undefined : forecastFullDisk(freeBytes, kept)
  return { databaseBytes, freeBytes, bytesPerEvent, growthPerDay: ofLedger + ofAudit, fullInDays }
}

/** Reads the size of the database, the room on its disk and how long that lasts. */
export async function readStorageForecast(
  db: Database,
  { now, disk, retention }: { now: Date; disk: DiskSource; retention: StorageRetention },
): Promise<StorageForecast> {
  const facts = await readStorageFacts(db, { now })
  const freeBytes = await findFreeBytes(disk, facts.databaseBytes)
  return buildStorageForecast(facts, { freeBytes, retention })
}

async function findFreeBytes({ dataDir, diskBytes }: DiskSource, databaseBytes: number): Promise<number | undefined> {
  const ofSetting = diskBytes === undefined ? undefined : Math.max(0, diskBytes - databaseBytes)
  const ofDisk = dataDir === undefined ? undefined : await findFreeOfDisk(dataDir)
  return ofSetting === undefined ? ofDisk : Math.min(ofSetting, ofDisk ?? ofSetting)
}

/** Undefined if the directory cannot be read: missing figures are not a failure. */
async function findFreeOfDisk(directory: string): Promise<number | undefined> {
  return statfs(directory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => undefined,
  )
}
