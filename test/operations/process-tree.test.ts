import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { watchProcessTree } from '../harness/run/process-tree.ts'

/** Works for half a second of processor time. */
const WORK = 'for (;;) { const { user, system } = process.cpuUsage(); if (user + system > 500_000) break }'

test('the processor time of a child that has ended, and of its child, is counted once', async () => {
  if (process.platform !== 'linux') {
    process.stdout.write('the processor time of processes is read on Linux alone\n')
    return
  }
  const tree = watchProcessTree(process.pid)
  tree.look()
  const before = tree.seconds()
  const parent = `require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(WORK)}]); ${WORK}`
  await promisify(execFile)(process.execPath, ['-e', parent])
  tree.look()
  const after = tree.seconds()
  const grown = after.other + after.ended - before.other - before.ended
  expect(grown).toBeGreaterThanOrEqual(0.9)
  expect(grown).toBeLessThan(3)
})
