import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { copyCluster } from '../database/cluster.ts'

/**
 * Puts a migrated cluster into a data directory where none is: a start then runs neither initdb nor migrations, which take
 * two seconds of processor time. Does nothing in a run on the server of TEST_DATABASE_URL.
 */
export async function seedDataDir(dataDir: string): Promise<void> {
  const cluster = inject('cluster')
  if (cluster === undefined) return
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await copyCluster(cluster, join(dataDir, 'postgres'))
}
