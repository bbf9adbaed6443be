import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { machineClock, systemClock } from './clock.ts'
import {
  adoptDatabaseClock,
  combine,
  followDatabaseClock,
  judgeSkew,
  mayDelete,
  SKEW_REPORTED_MS,
  SKEW_TRUSTED_MS,
} from './database-clock.ts'

const NOON = Date.UTC(2026, 8, 11, 12)

/** A process whose machine is `aheadMs` ahead of the database. Times pass for all three clocks with `pass`. */
function openClocks(aheadMs = 0) {
  const machine = buildManualClock(NOON + aheadMs)
  const fixture = { databaseMs: NOON, monotonicMs: 5_000 }
  const time = followDatabaseClock(machine, () => fixture.monotonicMs)
  const pass = (ms: number) => {
    fixture.databaseMs += ms
    fixture.monotonicMs += ms
    machine.advance(ms)
  }
  /** A look whose question takes `thereMs` and whose answer takes `backMs`. */
  const look = (thereMs = 0, backMs = thereMs) => {
    const sentAtMs = fixture.monotonicMs
    pass(thereMs)
    const { databaseMs } = fixture
    pass(backMs)
    time.observe({ sentAtMs, receivedAtMs: fixture.monotonicMs, databaseMs })
  }
  return { machine, fixture, time, pass, look }
}

describe('the clock that follows the database', () => {
  test('is that of the machine until the database has answered once', () => {
    const { time } = openClocks(40_000)
    expect(time.now()).toBe(NOON + 40_000)
    expect([time.skewMs(), time.verdict()]).toEqual([0, 'aligned'])
  })

  test.each([45 * 86_400_000, 40_000, 3_000, 0, -3_600_000])(
    'has the time of the database when the machine is %s ms ahead',
    (aheadMs) => {
      const { time, look, pass, fixture } = openClocks(aheadMs)
      look(4)
      expect(time.now()).toBe(fixture.databaseMs)
      pass(123_456)
      expect(time.now()).toBe(fixture.databaseMs)
      expect(time.skewMs()).toBe(aheadMs)
    },
  )

  test('goes on when the clock of the machine is set while the process runs', () => {
    const { time, look, pass, machine, fixture } = openClocks()
    look()
    machine.set(NOON + 3_600_000)
    expect([time.now(), time.verdict()]).toEqual([fixture.databaseMs, 'distrusted'])
    pass(1_000)
    machine.set(fixture.databaseMs)
    expect([time.now(), time.verdict()]).toEqual([fixture.databaseMs, 'aligned'])
  })

  test('takes over a step of the database, and knows for how long it has been', () => {
    const { time, look, pass, fixture } = openClocks()
    look(1)
    expect(time.stepAgeMs()).toBe(Number.POSITIVE_INFINITY)
    fixture.databaseMs += 3_600_000
    look(1)
    expect([time.now(), time.stepAgeMs(), time.verdict()]).toEqual([fixture.databaseMs, 0, 'distrusted'])
    pass(700)
    expect(time.stepAgeMs()).toBe(700)
    fixture.databaseMs -= 3_600_000
    look(1)
    expect([time.now(), time.verdict()]).toEqual([fixture.databaseMs, 'aligned'])
  })

  test('is not moved by an answer that a stall held up, however one-sided', () => {
    const { time, look, fixture } = openClocks()
    look(1)
    look(0, 20_000)
    expect(time.now()).toBe(fixture.databaseMs)
    look(20_000, 0)
    expect(time.now()).toBe(fixture.databaseMs)
    expect(time.stepAgeMs()).toBe(Number.POSITIVE_INFINITY)
  })

  test('learns from a quicker answer what a slow first one could not say', () => {
    const { time, look, fixture } = openClocks(30_000)
    look(0, 24_000)
    // Between 12 s wrong and right: no process is stopped for what may be the answer's way.
    expect(Math.abs(time.now() - fixture.databaseMs)).toBe(12_000)
    look(2)
    expect(time.now()).toBe(fixture.databaseMs)
    expect(time.verdict()).toBe('distrusted')
  })

  test('stands still for a correction back of less than a second', () => {
    const { time, look, fixture, pass } = openClocks()
    look(0)
    const before = time.now()
    fixture.databaseMs -= 400
    look(0)
    expect(time.now()).toBe(before)
    pass(399)
    expect(time.now()).toBe(before)
    pass(2)
    expect(time.now()).toBe(before + 1)
  })

  test('ignores an answer without a time', () => {
    const { time, look, fixture } = openClocks()
    look()
    time.observe({ sentAtMs: 0, receivedAtMs: 1, databaseMs: Number.NaN })
    expect(time.now()).toBe(fixture.databaseMs)
  })
})

describe('what is known of the difference', () => {
  test('is replaced by a sample that says more, and kept at one that says less', () => {
    const known = { offsetMs: 100, errorMs: 5, atMs: 0 }
    const better = combine(known, { sentAtMs: 0, receivedAtMs: 4, databaseMs: 104 })
    expect(better).toEqual({ next: { offsetMs: 102, errorMs: 2, atMs: 4 }, isStep: false })
    expect(combine(known, { sentAtMs: 0, receivedAtMs: 40, databaseMs: 122 })).toEqual({ next: known, isStep: false })
  })

  test('gets less exact as time passes, so that the clocks cannot drift apart unseen', () => {
    const known = { offsetMs: 100, errorMs: 1, atMs: 0 }
    const late = combine(known, { sentAtMs: 60_000, receivedAtMs: 60_004, databaseMs: 60_110 })
    expect(late).toEqual({ next: { offsetMs: 108, errorMs: 2, atMs: 60_004 }, isStep: false })
  })

  test('counts two seconds and more as a step of the database', () => {
    const known = { offsetMs: 0, errorMs: 0, atMs: 0 }
    expect(combine(known, { sentAtMs: 0, receivedAtMs: 0, databaseMs: 1_999 }).isStep).toBe(false)
    expect(combine(known, { sentAtMs: 0, receivedAtMs: 0, databaseMs: 2_000 }).isStep).toBe(true)
  })
})

describe('what is old', () => {
  test('may be deleted unless no clock is trusted, and from ten minutes after a step of the database on', () => {
    expect(mayDelete(undefined)).toBe(true)
    const { time, look, pass, machine, fixture } = openClocks()
    look(1)
    expect(mayDelete(time)).toBe(true)
    // One machine holds the service and the database: they agree, and both are wrong.
    fixture.databaseMs += 45 * 86_400_000
    machine.set(fixture.databaseMs)
    look(1)
    expect([time.verdict(), time.stepMs()]).toEqual(['aligned', 45 * 86_400_000])
    expect(mayDelete(time)).toBe(false)
    pass(599_999)
    expect(mayDelete(time)).toBe(false)
    pass(1)
    expect(mayDelete(time)).toBe(true)
    machine.set(fixture.databaseMs + 15_000)
    expect(mayDelete(time)).toBe(false)
  })
})

describe('a skew', () => {
  test.each([
    [SKEW_REPORTED_MS, 0, 'aligned'],
    [SKEW_REPORTED_MS + 1, 0, 'skewed'],
    [-SKEW_REPORTED_MS - 1, 0, 'skewed'],
    [SKEW_TRUSTED_MS, 0, 'skewed'],
    [SKEW_TRUSTED_MS + 1, 0, 'distrusted'],
    [-SKEW_TRUSTED_MS - 1, 0, 'distrusted'],
    [SKEW_TRUSTED_MS + 1, 1, 'skewed'],
    [SKEW_REPORTED_MS + 1, 1, 'aligned'],
  ] as const)('of %s ms that may be %s ms less is %s', (skewMs, errorMs, verdict) => {
    expect(judgeSkew(skewMs, errorMs)).toBe(verdict)
  })
})

test('what reads the time as Date.now gets that of the database, until the clock is given back', () => {
  const { time, restore } = adoptDatabaseClock(buildManualClock(NOON))
  try {
    time.observe({ sentAtMs: time.monotonicMs(), receivedAtMs: time.monotonicMs(), databaseMs: NOON })
    expect(Math.abs(Date.now() - NOON)).toBeLessThan(60_000)
    expect(Number.isInteger(Date.now())).toBe(true)
    expect(Math.abs(systemClock.now() - NOON)).toBeLessThan(60_000)
    expect(Math.abs(machineClock.now() - NOON)).toBeGreaterThan(86_400_000)
  } finally {
    restore()
  }
  expect(Math.abs(Date.now() - machineClock.now())).toBeLessThan(60_000)
})
