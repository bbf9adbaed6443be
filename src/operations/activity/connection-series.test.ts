import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { renewProcess } from '../../realtime/embedded/fleet/fleet.store.ts'
import { buildActivityCounter } from './activity-counter.ts'

const PATH = '/api/v3/realtime/dashboard/connection'
const NOON = Date.UTC(2026, 8, 11, 12)
const MINUTE_MS = 60_000
const PROCESSES = ['01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000002'] as const

const fail = (fields: { err: Error }) => {
  throw fields.err
}

const t = await openForFile(createTestApp())
t.clock.set(NOON)
const counters = [1, 2, 3].map(() =>
  buildActivityCounter({ db: t.database.db, clock: t.clock, logger: { warn: fail } as never }),
)

const beat = (process: string, connections: number) =>
  renewProcess(t.database.db, { process, connections, now: new Date(t.clock.now()), isOnBus: false, carried: 0 })
const countAll = () => Promise.all(counters.map((counter) => counter.count()))
const read = async (range: string) => (await t.admin('GET', `${PATH}?range=${range}`)).body.data

test('without an embedded server there is no reading, and none is claimed to be 0', async () => {
  await countAll()
  const data = await read('1h')
  expect([data.average, data.peak, data.buckets.length]).toEqual([null, null, 60])
  expect(new Set(data.buckets.map(({ peak }: { peak: number | null }) => peak))).toEqual(new Set([null]))
})

test('connections of all processes are read once a minute, however many count them', async () => {
  for (const [ofFirst, ofSecond] of [
    [3, 4],
    [10, 20],
    [0, 2],
  ] as const) {
    t.clock.advance(MINUTE_MS)
    await beat(PROCESSES[0], ofFirst)
    await beat(PROCESSES[1], ofSecond)
    await countAll()
    // A second round within the minute reads nothing.
    await beat(PROCESSES[0], 1_000)
    await countAll()
  }
  const data = await read('1h')
  expect(data).toMatchObject({ range: '1h', bucket_seconds: 60, average: 13, peak: 30 })
  expect(data.buckets.slice(-3)).toEqual([
    { at: new Date(NOON + MINUTE_MS).toISOString(), average: 7, peak: 7 },
    { at: new Date(NOON + 2 * MINUTE_MS).toISOString(), average: 30, peak: 30 },
    { at: new Date(NOON + 3 * MINUTE_MS).toISOString(), average: 2, peak: 2 },
  ])
  for (const range of ['24h', '7d', '30d']) {
    const { buckets, ...rest } = await read(range)
    expect(rest, range).toMatchObject({ average: 13, peak: 30 })
    expect(buckets.at(-1), range).toMatchObject({ average: 13, peak: 30 })
    expect(buckets.at(-2), range).toMatchObject({ average: null, peak: null })
  }
})

test('a killed process counts for 15 seconds', async () => {
  t.clock.set(NOON + 10 * MINUTE_MS)
  await beat(PROCESSES[0], 5)
  t.clock.advance(15_001)
  await beat(PROCESSES[1], 6)
  await countAll()
  expect((await read('1h')).buckets.at(-1)).toMatchObject({ peak: 6 })
  // All of them are gone: the minute has no reading.
  t.clock.advance(MINUTE_MS)
  await countAll()
  expect((await read('1h')).buckets.at(-1)).toMatchObject({ average: null, peak: null })
})

test('the read needs a token, realtime:dashboard-connections and a range', async () => {
  expect((await t.anonymous('GET', PATH)).status).toBe(401)
  const refused = await (await t.signInMember([])).call('GET', PATH)
  expect([refused.status, refused.body.detail]).toEqual([
    403,
    expect.stringContaining('realtime:dashboard-connections'),
  ])
  expect((await t.admin('GET', `${PATH}?range=2h`)).status).toBe(422)
})
