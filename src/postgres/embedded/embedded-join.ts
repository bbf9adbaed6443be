import { join, resolve } from 'node:path'
import { buildClusterPlace, buildConnectionString, loadPassword } from './embedded-cluster.ts'
import { EmbeddedPostgresError, findSystemErrorCode } from './embedded-error.ts'
import { findClusterProcesses, findPostmaster, waitUntil } from './embedded-orphan.ts'

/** Wait for a server that another process is starting. */
const READY_LIMIT_MS = 10_000

/**
 * The connection string of the embedded server that another process runs on `dataDir`: its port is in the cluster, and the
 * password in a file that the user of that process alone can read. Undefined where no server answers, or it is another
 * user's.
 */
export async function findRunningPostgres(dataDir: string, platform = process.platform): Promise<string | undefined> {
  const place = buildClusterPlace(join(resolve(dataDir), 'postgres'))
  try {
    let port = 0
    const isReady = await waitUntil(async () => {
      const found = await findPostmaster(place.dataDir)
      port = found?.port ?? 0
      return found?.status === 'ready' && port > 0 && (await isServing(place.dataDir, found.pid, platform))
    }, READY_LIMIT_MS)
    return isReady ? buildConnectionString(await loadPassword(place), port) : undefined
  } catch (error) {
    if (error instanceof EmbeddedPostgresError || findSystemErrorCode(error) !== undefined) return undefined
    throw error
  }
}

/** Whether the process of the file is the server of the cluster: a killed server leaves its file. */
async function isServing(clusterDir: string, pid: number, platform: NodeJS.Platform): Promise<boolean> {
  return platform === 'win32' || (await findClusterProcesses(clusterDir, platform)).includes(pid)
}
