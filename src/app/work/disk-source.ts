import { join } from 'node:path'
import type { DiskSource } from '../../operations/storage/storage.ts'
import type { Config } from '../config/config.ts'

/** Source of the database's disk space: the service sees the disk of the embedded one only. */
export function findDiskSource(config: Pick<Config, 'databaseUrl' | 'dataDir' | 'databaseDiskBytes'>): DiskSource {
  return {
    dataDir: config.databaseUrl === undefined ? join(config.dataDir, 'postgres') : undefined,
    diskBytes: config.databaseDiskBytes,
  }
}
