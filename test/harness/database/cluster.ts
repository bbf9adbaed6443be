import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { promisify } from 'node:util'

/** Copies a stopped cluster with the owners of its files: a run as root has a server of another user. */
export async function copyCluster(from: string, to: string): Promise<void> {
  if (process.platform === 'win32') await cp(from, to, { recursive: true })
  else await promisify(execFile)('cp', ['-a', from, to])
}
