import { cp, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PROJECT_ROOT } from './process.ts'

/** What Node compiled of a copy of the sources, for the copy of the next run. */
export interface CompiledCopy {
  /** Variables of a program in the copy. */
  env: Record<string, string>
  /** Keeps what was compiled anew; before the copy is removed. */
  keep(): Promise<void>
}

/**
 * Gives a copy of the sources the compile cache of copies before it, which takes most of the work of a start from a program.
 * The paths in it are relative to it: a folder of copies is always as deep. Where the cache cannot be written, each run
 * compiles anew. `name`: of the kept cache.
 */
export async function openCompiledCopy(copy: string, name: string): Promise<CompiledCopy> {
  const kept = join(PROJECT_ROOT, 'node_modules', '.cache', name)
  const own = join(copy, '.compiled')
  const startedMs = Date.now()
  await cp(kept, own, { recursive: true, preserveTimestamps: true }).catch(() => {})
  const isNew = async (path: string) => {
    const found = await stat(path)
    return found.isDirectory() || found.mtimeMs >= startedMs
  }
  return {
    env: { NODE_COMPILE_CACHE: own, NODE_COMPILE_CACHE_PORTABLE: '1' },
    keep: () => cp(own, kept, { recursive: true, filter: isNew }).catch(() => {}),
  }
}
