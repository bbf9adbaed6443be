import { expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { foldOutcomes } from '../../webhook/activity/outcome.store.ts'
import { RANGES, type Range } from './series.ts'

const SERIES = '/api/v3/webhook/dashboard/series'
const SUMMARY = '/api/v3/webhook/dashboard/summary'

/** In the middle of a minute, an hour, a quarter of a day and a day. */
const ATTEMPTED_AT = Date.UTC(2026, 8, 11, 14, 20, 30)

const d = await openForFile(openDelivery())
d.t.clock.set(ATTEMPTED_AT)
await d.makeWebhook()
await d.emit()
await d.pass(0)
await foldOutcomes(d.t.database.db, { limit: 1_000 })

/** Sets the time and runs all of the maintenance, as a process does that lived until then. */
async function liveUntil(at: number): Promise<void> {
  d.t.clock.set(at)
  await d.t.app.maintenance.sweep()
}

const readSeries = async (range: Range) => (await d.call('GET', `${SERIES}?range=${range}`)).body.data
const readSummary = async () => (await d.call('GET', SUMMARY)).body.data

async function expectSeriesToEnd(range: Range): Promise<void> {
  const { stepMs, count } = RANGES[range]
  const leavesAt = (Math.floor(ATTEMPTED_AT / stepMs) + count) * stepMs
  await liveUntil(leavesAt - 1)
  const last = await readSeries(range)
  expect([last.success, last.buckets[0].success]).toEqual([1, 1])
  await liveUntil(leavesAt)
  expect((await readSeries(range)).success).toBe(0)
}

// In the order of time, which runs on from test to test.
test.each(['1h', '24h'] as const)('the maintenance keeps what the series of %s shows', expectSeriesToEnd)

test('the maintenance keeps what the summary shows of 24 hours', async () => {
  const leavesAt = ATTEMPTED_AT - (ATTEMPTED_AT % 60_000) + 86_400_000 + 60_000
  await liveUntil(leavesAt - 1)
  expect((await readSummary()).deliveries_24h.success).toBe(1)
  await liveUntil(leavesAt)
  expect((await readSummary()).deliveries_24h.success).toBe(0)
})

test.each(['7d', '30d'] as const)('the maintenance keeps what the long series of %s shows', expectSeriesToEnd)
