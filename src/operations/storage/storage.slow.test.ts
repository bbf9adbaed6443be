import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import type { StorageFacts } from './storage.store.ts'
import { buildStorageForecast, readStorageForecast } from './storage.ts'

const GB = 1e9
const DAY_MS = 24 * 3_600_000
const retention = { webhookLedgerRetentionDays: 30, auditRetentionDays: 365 }

/** Ten days of 8.64 million events, of 1 kB each, and audit entries of 1 GB. */
const facts: StorageFacts = {
  databaseBytes: 90 * GB,
  ledgerBytes: 86.4 * GB,
  events: 86_400_000,
  ledgerDays: 10,
  recentDays: 7,
  recentEvents: 7 * 8_640_000,
  auditBytes: GB,
  auditDays: 10,
}

describe('a forecast', () => {
  test('names what an event keeps, what a day brings and the day on which the disk is full', () => {
    const forecast = buildStorageForecast(facts, { freeBytes: 87.4 * GB, retention })
    expect(forecast).toMatchObject({ databaseBytes: 90 * GB, freeBytes: 87.4 * GB, bytesPerEvent: 1_000 })
    expect(forecast.growthPerDay).toBeCloseTo(8.74 * GB, -3)
    expect(forecast.fullInDays).toBeCloseTo(10, 6)
  })

  test('is that retention keeps up, where there is room for all of it', () => {
    // 20 days more of events, and 355 of audit entries.
    const needed = 20 * 8.64 * GB + 355 * 0.1 * GB
    expect(buildStorageForecast(facts, { freeBytes: needed + GB, retention }).fullInDays).toBeNull()
    expect(buildStorageForecast(facts, { freeBytes: needed - GB, retention }).fullInDays).toBeGreaterThan(30)
  })

  test('is not made of a few events or a few minutes, nor without a known disk', () => {
    const { fullInDays, growthPerDay } = buildStorageForecast(facts, { freeBytes: undefined, retention })
    expect([fullInDays, growthPerDay]).toEqual([undefined, expect.any(Number)])
    for (const less of [{ events: 999 }, { recentDays: 0.01 }])
      expect(buildStorageForecast({ ...facts, ...less }, { freeBytes: GB, retention })).toMatchObject({
        bytesPerEvent: undefined,
        growthPerDay: undefined,
        fullInDays: undefined,
      })
  })
})

describe('what the database says', () => {
  const now = new Date('2026-11-20T00:00:00Z')
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const read = (disk: { dataDir: string | undefined; diskBytes: number | undefined }) =>
    readStorageForecast(database.db, { now, disk, retention })

  test('is its size alone while nothing was recorded', async () => {
    const forecast = await read({ dataDir: undefined, diskBytes: undefined })
    expect(forecast).toEqual({
      databaseBytes: expect.any(Number),
      freeBytes: undefined,
      bytesPerEvent: undefined,
      growthPerDay: undefined,
      fullInDays: undefined,
    })
    expect(forecast.databaseBytes).toBeGreaterThan(1_000_000)
  })

  test('is how many events there are, how old they are and how many the last week brought', async () => {
    await database.pool.query(
      `insert into event_occurrence (document_id, event, resource, action, created_at, routed_at)
       select gen_random_uuid(), 'a.b', 'a', 'b', $1::timestamptz - n * interval '9 minutes', $1
       from generate_series(3_200, 1, -1) n`,
      [now],
    )
    const { databaseBytes, ...forecast } = await read({ dataDir: undefined, diskBytes: undefined })
    // 20 days of 160 events each.
    const tables = ['event_occurrence', 'webhook_dispatch_ended', 'webhook_attempt']
    const { rows } = await database.pool.query(
      'select sum(pg_total_relation_size(t::regclass))::int as bytes from unnest($1::text[]) t',
      [tables],
    )
    expect(forecast.bytesPerEvent).toBeCloseTo(rows[0].bytes / 3_200, 6)
    expect(forecast.growthPerDay! / forecast.bytesPerEvent!).toBeCloseTo(160, 0)
    const tight = await read({
      dataDir: undefined,
      diskBytes: databaseBytes + Math.round(4.5 * forecast.growthPerDay!),
    })
    expect(tight.fullInDays).toBeCloseTo(4.5, 0)
  })

  test('is judged by the disk of the embedded database, or by less where the setting says so', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox storage '))
    try {
      const { freeBytes, databaseBytes } = await read({ dataDir, diskBytes: undefined })
      expect(freeBytes).toBeGreaterThan(0)
      expect((await read({ dataDir, diskBytes: databaseBytes + 1_000 })).freeBytes).toBeLessThanOrEqual(1_000)
      expect((await read({ dataDir: undefined, diskBytes: 1 })).freeBytes).toBe(0)
    } finally {
      await rm(dataDir, { recursive: true })
    }
  })

  test('is found by the ends of indexes, whatever there is between', async () => {
    await database.pool.query('analyze event_occurrence')
    const { rows } = await database.pool.query(
      `explain (format json) select created_at from event_occurrence
       where created_at >= $1::timestamptz - interval '7 days' order by created_at limit 1`,
      [new Date(now.getTime() - DAY_MS)],
    )
    expect(JSON.stringify(rows)).toContain('event_occurrence_created_idx')
  })
})
