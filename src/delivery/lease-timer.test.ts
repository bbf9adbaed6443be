import pino from 'pino'
import { expect, test } from 'vitest'
import { rest } from '../../test/harness/delivery/dispatcher-in-memory.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { keepRenewed } from './lease-timer.ts'

/** A kept lease whose renewals end when the test says so. */
function openLease() {
  const clock = buildManualClock()
  const renewals: ((gone: string[]) => void)[] = []
  const lease = {
    renew: () => new Promise<string[]>((resolve) => renewals.push(resolve)),
    isTrusted: () => true,
    hasPeers: () => false,
    gone: () => [],
    end: async () => {},
  }
  const kept = keepRenewed(lease, { clock, logger: pino({ level: 'silent' }) })
  return { clock, renewals, kept }
}

test('who asks before the first renewal has ended shares it', async () => {
  const { kept, renewals, clock } = openLease()
  const running = kept.run()
  const asked = kept.renew()
  expect(renewals).toHaveLength(1)
  renewals[0]?.(['worker-b'])
  expect(await asked).toEqual(['worker-b'])
  await rest()
  kept.stop()
  clock.advance(1_000)
  await running
})

test('a renewal counts for less than 1.5 s, and for nothing when no timer renews', async () => {
  const { kept, renewals, clock } = openLease()
  const running = kept.run()
  renewals[0]?.(['worker-b'])
  await rest()
  expect(await kept.renew()).toEqual(['worker-b'])
  clock.advance(1_000)
  await rest()
  // That of the timer is under way.
  expect(renewals).toHaveLength(2)
  clock.advance(499)
  expect(await kept.renew()).toEqual(['worker-b'])
  clock.advance(1)
  const late = kept.renew()
  renewals[1]?.(['worker-c'])
  expect(await late).toEqual(['worker-c'])
  await rest()
  kept.stop()
  clock.advance(1_000)
  await running
  const again = kept.renew()
  expect(renewals).toHaveLength(3)
  renewals[2]?.([])
  expect(await again).toEqual([])
})
