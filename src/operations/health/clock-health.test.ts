import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { decideClockFacts } from './clock-health.ts'
import { FACTS_LIFETIME_MS } from './webhook-out.ts'

const app = await openForFile(createTestApp())

const skewOf = (...skews: number[]) =>
  decideClockFacts(skews.map((skewMs, index) => ({ process: `worker-${index}`, skewMs })))

describe('the facts of the clocks', () => {
  test.each([
    [[], { skewed_processes: 0, resting_processes: 0, largest_skew_s: 0 }],
    [[2_000, -2_000], { skewed_processes: 0, resting_processes: 0, largest_skew_s: 0 }],
    [[2_001], { skewed_processes: 1, resting_processes: 0, largest_skew_s: 2 }],
    [[10_000, -2_001], { skewed_processes: 2, resting_processes: 0, largest_skew_s: 10 }],
    [[10_001, -3_600_000], { skewed_processes: 2, resting_processes: 2, largest_skew_s: -3_600 }],
  ])('of skews of %j ms are %j', (skews, facts) => {
    expect(skewOf(...skews)).toMatchObject(facts)
  })

  test('name what to do while a process is off, and nothing else', () => {
    expect(skewOf(3_000).remedy).toContain('docs/operations.md, clock skew')
    expect(skewOf(0).remedy).toBeNull()
  })
})

test('the component is degraded for as long as a process says that its machine is off, and 30 s longer', async () => {
  const ask = async () => {
    app.clock.advance(FACTS_LIFETIME_MS)
    return (await app.anonymous('GET', '/api/v3/health/component/clock')).body.data
  }
  expect(await ask()).toMatchObject({ component: 'clock', status: 'operational', details: { remedy: null } })
  const seenAt = new Date(app.clock.now())
  await app.database.pool.query("insert into process_skew values ('worker-a', 4200, $1)", [seenAt])
  expect(await ask()).toMatchObject({ status: 'degraded', details: { skewed_processes: 1, largest_skew_s: 4.2 } })
  app.clock.set(seenAt.getTime() + 30_000 - 1 - FACTS_LIFETIME_MS)
  expect(await ask()).toMatchObject({ status: 'degraded' })
  app.clock.advance(1)
  expect(await ask()).toMatchObject({ status: 'operational', details: { skewed_processes: 0 } })
  // The clock of the database was set back behind what the process reported.
  app.clock.set(seenAt.getTime() - 86_400_000)
  expect(await ask()).toMatchObject({ status: 'operational', details: { skewed_processes: 0 } })
})
