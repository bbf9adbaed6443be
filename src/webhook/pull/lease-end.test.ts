import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { EndedAttempt } from '../delivery/outcome.ts'
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

/** An ender that finds `found` leases at each look, of which `recorded` are ended. */
function open({ found, recorded }: { found: number; recorded: number }) {
  const settled: EndedAttempt[][] = []
  const told: number[] = []
  const rows = Array.from({ length: found }, () => ({ startedAt: new Date(1_000), leasedUntil: new Date(1_007) }))
  const ender = buildLeaseEnder({
    clock: buildManualClock(),
    isTrusted: () => true,
    db: { executeQuery: async () => ({ rows }) },
    settle: async (ended: EndedAttempt[]) => {
      settled.push(ended)
      if (settled.length === 3) ender.stop()
      return { recorded: Array.from({ length: recorded }) }
    },
    onSettled: (ended: { recorded: unknown[] }) => told.push(ended.recorded.length),
  } as unknown as LeaseEnderDeps)
  return { ender, settled, told }
}

test('a round goes on while a full batch was ended, and stops with the process', async () => {
  const { ender, settled } = open({ found: 500, recorded: 1 })
  await ender.endLapsed()
  expect(settled).toHaveLength(3)
})

test.each([
  ['held back by a lock', { found: 500, recorded: 0 }],
  ['fewer than a batch', { found: 499, recorded: 499 }],
])('leases that are %s end the round', async (_name, given) => {
  const { ender, settled } = open(given)
  await ender.endLapsed()
  expect(settled).toHaveLength(1)
})

test('the attempt of a lease took until its end, and is told once', async () => {
  const { ender, settled, told } = open({ found: 1, recorded: 1 })
  await ender.endLapsed()
  expect(told).toEqual([1])
  expect(settled[0]).toMatchObject([
    { durationMs: 7, endedAt: new Date(1_007), result: { errorClass: 'lease_expired' } },
  ])
})
