import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildLeaseEnder, type LeaseEnderDeps } from './lease-end.ts'

test('leases are ended every five seconds, and none while the clock is not trusted', async () => {
  const slept: number[] = []
  let rounds = 0
  const ender = buildLeaseEnder({
    clock: {
      ...buildManualClock(),
      sleep: async (ms: number) => {
        slept.push(ms)
        if (slept.length === 3) ender.stop()
      },
    },
    isTrusted: () => {
      rounds += 1
      return false
    },
  } as unknown as LeaseEnderDeps)
  await ender.run()
  expect(slept).toEqual([5_000, 5_000, 5_000])
  expect(rounds).toBe(3)
})
