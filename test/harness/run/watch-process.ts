import fs from 'node:fs'
import { afterAll, vi } from 'vitest'

/** What a test may change of its process, and the next file of tests would find changed. */
function readProcess() {
  return {
    env: { ...process.env },
    cwd: process.cwd(),
    umask: process.umask(),
    isFakeTime: vi.isFakeTimers(),
    clock: Date.now,
    fetch: globalThis.fetch,
    output: { stdout: process.stdout.write, stderr: process.stderr.write, descriptors: fs.writeSync },
    log: console.log,
  }
}

const before = readProcess()

/** Files of tests share their process: one that leaves it changed fails itself, and not another one after it. */
afterAll(() => {
  vi.restoreAllMocks()
  const after = readProcess()
  const changed = Object.entries(before).flatMap(([name, value]) => (isEqual(value, after[name as never]) ? [] : name))
  if (changed.length > 0) throw new Error(`this file leaves its process changed: ${changed.join(', ')}`)
})

function isEqual(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return one === other
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => one[name as never] === other[name as never])
}
