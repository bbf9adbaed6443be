import { expect, test } from 'vitest'
import { buildUpgradeRouter } from './upgrade.ts'

/** The longest path that Node reads. */
const LONGEST = 16_000

/**
 * Processor time of this thread, so that other programs do not count. The honest cost is a fraction of a millisecond, a collection
 * of garbage a tenth of a second, and quadratic work many seconds.
 */
const LIMIT_MS = 1_000

test('a path of slashes is matched in time linear in its length', () => {
  const upgrades = buildUpgradeRouter()
  upgrades.mount('/app', () => {})
  const paths = ['/', '/a', '/app/'].map((part) => part.repeat(LONGEST / part.length))
  const before = process.threadCpuUsage()
  for (let round = 0; round < 20; round += 1)
    for (const [index, path] of paths.entries()) upgrades.takes(`${path}${round}${index}`)
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(LIMIT_MS)
})

test.each([
  ['/app', true],
  ['/app/key', true],
  ['/app/key/more?x=/other', true],
  ['/app?x=1', true],
  ['/apple', false],
  ['/other/app', false],
  ['/', false],
  ['', false],
])('a handler below /app takes %j: %j', (path, isTaken) => {
  const upgrades = buildUpgradeRouter()
  upgrades.mount('/app', () => {})
  expect(upgrades.takes(path)).toBe(isTaken)
})
