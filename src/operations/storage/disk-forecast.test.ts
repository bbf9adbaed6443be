import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { forecastFullDisk, type KeptRows } from './disk-forecast.ts'

const GB = 1e9

/** 16 GB a day, kept for 30 days. */
const rows = (change: Partial<KeptRows> = {}): KeptRows => ({
  bytes: 16 * GB,
  ageDays: 1,
  bytesPerDay: 16 * GB,
  retentionDays: 30,
  ...change,
})

describe('the day on which the disk is full', () => {
  test.each([
    // 29 days grow by 16 GB each; then what comes goes.
    [463 * GB, [rows()], 463 / 16],
    [465 * GB, [rows()], null],
    [160 * GB, [rows()], 10],
    [0, [rows()], 0],
    [-1, [rows()], 0],
    // Everything that comes is deleted as fast.
    [1, [rows({ bytes: 480 * GB, ageDays: 30 })], null],
    // Twice as much comes as did: until the old ones are gone.
    [100 * GB, [rows({ bytes: 480 * GB, ageDays: 30, bytesPerDay: 32 * GB })], 100 / 16],
    [480 * GB + 1, [rows({ bytes: 480 * GB, ageDays: 30, bytesPerDay: 32 * GB })], null],
    // Never deleted.
    [100 * GB, [rows({ bytesPerDay: GB, retentionDays: 0 })], 100],
    // Two kinds of rows.
    [100 * GB, [rows({ bytesPerDay: 3 * GB }), rows({ bytesPerDay: 2 * GB, retentionDays: 365 })], 20],
    [1, [], null],
    [1, [rows({ bytes: 0, ageDays: 0, bytesPerDay: 0 })], null],
  ])('with %i bytes left and %j is %s', (freeBytes, kept, day) => {
    const full = forecastFullDisk(freeBytes, kept)
    if (day === null) expect(full).toBeNull()
    else expect(full).toBeCloseTo(day, 6)
  })
})

/** Nothing is older than its retention. */
const kinds = fc.array(
  fc
    .record({
      bytes: fc.integer({ min: 0, max: 1_000_000 }),
      age: fc.integer({ min: 0, max: 400 }),
      bytesPerDay: fc.integer({ min: 0, max: 10_000 }),
      retentionDays: fc.constantFrom(0, 1, 30, 365),
    })
    .map(({ age, ...rest }) => ({ ...rest, ageDays: rest.retentionDays === 0 ? age : age % (rest.retentionDays + 1) })),
  { maxLength: 4 },
)
const space = fc.integer({ min: 1, max: 2_000_000 })

/** The first day on whose end there is no room, where the rows of each day are counted by themselves. */
function simulate(freeBytes: number, kept: readonly KeptRows[], days: number): number | null {
  const kinds = kept.map(({ bytes, ageDays, bytesPerDay, retentionDays }) => ({
    // The rows of each day, oldest first.
    rows: Array.from({ length: ageDays }, () => bytes / ageDays),
    bytesPerDay,
    retentionDays,
  }))
  const measure = () => kinds.reduce((sum, { rows }) => sum + rows.reduce((all, item) => all + item, 0), 0)
  const first = measure()
  for (let day = 1; day <= days; day += 1) {
    for (const { rows, bytesPerDay, retentionDays } of kinds) {
      rows.push(bytesPerDay)
      if (retentionDays > 0 && rows.length > retentionDays) rows.shift()
    }
    if (measure() - first >= freeBytes - 1e-6) return day
  }
  return null
}

describe('for any rows', () => {
  test('the forecast is within the day that a count by days finds', () => {
    fc.assert(
      fc.property(space, kinds, (freeBytes, kept) => {
        const counted = simulate(freeBytes, kept, 800)
        const full = forecastFullDisk(freeBytes, kept)
        if (counted === null) expect(full === null || full > 800 - 1e-6).toBe(true)
        else {
          expect(full).not.toBeNull()
          expect(full as number).toBeLessThanOrEqual(counted + 1e-6)
          expect(full as number).toBeGreaterThan(counted - 1 - 1e-6)
        }
      }),
    )
  })

  test('more space is never full sooner, and more that comes never later', () => {
    fc.assert(
      fc.property(space, space, kinds, fc.integer({ min: 0, max: 5_000 }), (freeBytes, more, kept, extra) => {
        const dayOf = (free: number, some: readonly KeptRows[]) =>
          forecastFullDisk(free, some) ?? Number.POSITIVE_INFINITY
        const day = dayOf(freeBytes, kept)
        expect(dayOf(freeBytes + more, kept)).toBeGreaterThanOrEqual(day - 1e-9)
        const grown = kept.map((entry) => ({ ...entry, bytesPerDay: entry.bytesPerDay + extra }))
        expect(dayOf(freeBytes, grown)).toBeLessThanOrEqual(day + 1e-9)
      }),
    )
  })
})
