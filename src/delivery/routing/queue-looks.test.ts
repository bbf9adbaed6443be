import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildQueueLooks, FIRST } from './queue-looks.ts'

/** 2026-09-11T12:00:00Z as the first 48 bits of an id: 0x0199387d3e00 ms. */
const NOW_MS = 0x0199_387d_3e00
const LAST = '0199387d-3a00-7000-8000-000000000001'
const FULL = { isFull: true, last: LAST }
const NOT_FULL = { isFull: false, last: LAST }

function openLooks(nowMs = NOW_MS) {
  const clock = buildManualClock(nowMs)
  const looks = buildQueueLooks(clock)
  /** One look whose batch is `batch`. */
  const look = (batch: typeof FULL) => {
    const begun = looks.begin()
    return { ...begun, hasMore: looks.end(begun, batch) }
  }
  return { clock, looks, look }
}

describe('a look through the queue of events', () => {
  test('begins at the first event once a second, from the first look on', () => {
    const { clock, look } = openLooks()
    expect(look(NOT_FULL)).toEqual({ after: FIRST, isWhole: true, hasMore: false })
    clock.advance(999)
    expect(look(NOT_FULL).isWhole).toBe(false)
    clock.advance(1)
    expect(look(NOT_FULL)).toMatchObject({ after: FIRST, isWhole: true })
  })

  test('begins a second before the last look, between two of those', () => {
    const { clock, look } = openLooks()
    look(NOT_FULL)
    clock.advance(10)
    expect(look(NOT_FULL).after).toBe('0199387d-3a18-0000-0000-000000000000')
    expect(look({ isFull: false, last: LAST }).after).toBe('0199387d-3a22-0000-0000-000000000000')
  })

  test('begins at the first event in the first second of time', () => {
    const { look } = openLooks(500)
    look(NOT_FULL)
    expect(look(NOT_FULL).after).toBe(FIRST)
  })

  test('goes on behind the last event of a full batch', () => {
    const { look } = openLooks()
    expect(look(FULL).hasMore).toBe(true)
    expect(look(FULL)).toEqual({ after: LAST, isWhole: false, hasMore: true })
  })

  test('ends a backlog with a whole look at once, for what others left behind', () => {
    const { looks, look } = openLooks()
    look(FULL)
    expect(looks.isWholeDue()).toBe(false)
    expect(look(NOT_FULL)).toMatchObject({ isWhole: false, hasMore: true })
    expect(looks.isWholeDue()).toBe(true)
    expect(look(NOT_FULL)).toEqual({ after: FIRST, isWhole: true, hasMore: false })
    expect(look(NOT_FULL)).toMatchObject({ isWhole: false, hasMore: false })
  })

  test('is done with a backlog that ends in a whole look', () => {
    const { clock, look } = openLooks()
    look(FULL)
    clock.advance(1_000)
    expect(look(NOT_FULL)).toMatchObject({ isWhole: true, hasMore: false })
    expect(look(NOT_FULL)).toMatchObject({ isWhole: false, hasMore: false })
  })
})

test('the wait for the next whole look is what is left of a second, also after the clock was set back', () => {
  const { clock, looks, look } = openLooks()
  expect(looks.untilWholeMs()).toBe(0)
  look(NOT_FULL)
  expect(looks.untilWholeMs()).toBe(1_000)
  clock.advance(600)
  expect(looks.untilWholeMs()).toBe(400)
  clock.advance(1_000)
  expect(looks.untilWholeMs()).toBe(0)
  clock.set(NOW_MS - 3_600_000)
  expect([looks.isWholeDue(), looks.untilWholeMs()]).toEqual([true, 0])
})
