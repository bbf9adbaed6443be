import fs from 'node:fs'
import { afterAll, vi } from 'vitest'
import { buildCleanEnvironment } from '../process/process.ts'

/** What a test may change of its process, and the next file of tests would find changed. */
function readProcess() {
  return {
    cwd: process.cwd(),
    umask: process.umask(),
    'fake timers': vi.isFakeTimers(),
    'Date.now': Date.now,
    fetch: globalThis.fetch,
    'stdout.write': process.stdout.write,
    'stderr.write': process.stderr.write,
    'fs.writeSync': fs.writeSync,
  }
}

/** Variables that were changed, and new ones that the service or its programs read. A package may add its own as it is loaded. */
function listChangedVariables(before: NodeJS.ProcessEnv, after: NodeJS.ProcessEnv): string[] {
  const foreign = buildCleanEnvironment(after)
  const changed = Object.keys(before).filter((name) => before[name] !== after[name])
  return [...changed, ...Object.keys(after).filter((name) => !(name in before) && !(name in foreign))]
}

const variables = { ...process.env }
const before = readProcess()

/** Files of tests share their process: one that leaves it changed fails itself, and not another one after it. */
afterAll(() => {
  vi.restoreAllMocks()
  const after = readProcess()
  const changed = [
    ...Object.keys(before).filter((name) => before[name as keyof typeof before] !== after[name as keyof typeof after]),
    ...listChangedVariables(variables, process.env),
  ]
  if (changed.length > 0) throw new Error(`this file of tests leaves its process changed: ${changed.join(', ')}`)
})
