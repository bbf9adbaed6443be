import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildIdleLimits, readKeepAlive } from './idle-limit.ts'

const ORIGIN = 'https://a.example.com'

describe('for how long an idle connection is reused', () => {
  test('a second while nothing is known, and never over four', () => {
    const limits = buildIdleLimits()
    expect(limits.reuseMs(ORIGIN)).toBe(1_000)
    limits.noteOpen(ORIGIN, 500)
    expect(limits.reuseMs(ORIGIN)).toBe(1_000)
    limits.noteOpen(ORIGIN, 4_000)
    expect(limits.reuseMs(ORIGIN)).toBe(2_000)
    limits.noteAnnounced(ORIGIN, 60_000)
    expect(limits.reuseMs(ORIGIN)).toBe(2_000)
    limits.noteOpen('https://b.example.com', 60_000)
    expect(limits.reuseMs('https://b.example.com')).toBe(4_000)
  })

  test('half of the time after which its receiver closed one, at once when that is shorter, slowly when it is longer', () => {
    const limits = buildIdleLimits()
    limits.noteClosed(ORIGIN, 2_000)
    expect(limits.reuseMs(ORIGIN)).toBe(1_000)
    limits.noteClosed(ORIGIN, 400)
    expect(limits.reuseMs(ORIGIN)).toBe(200)
    limits.noteClosed(ORIGIN, 4_000)
    expect(limits.reuseMs(ORIGIN)).toBe(300)
    limits.noteOpen(ORIGIN, 3_000)
    expect(limits.reuseMs(ORIGIN)).toBe(450)
    expect(limits.reuseMs('https://b.example.com')).toBe(1_000)
  })

  test('half of what a receiver announces, when that is less than what is known', () => {
    const limits = buildIdleLimits()
    limits.noteAnnounced(ORIGIN, 1_000)
    expect(limits.reuseMs(ORIGIN)).toBe(500)
    limits.noteAnnounced(ORIGIN, 5_000)
    expect(limits.reuseMs(ORIGIN)).toBe(500)
  })

  test('is always short of a limit that the receiver keeps to', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 10_000 }),
        fc.array(fc.nat(10_000), { maxLength: 50 }),
        (limitMs, idles) => {
          const limits = buildIdleLimits()
          limits.noteClosed(ORIGIN, limitMs)
          for (const idleMs of idles) {
            if (idleMs >= limitMs) limits.noteClosed(ORIGIN, limitMs)
            else limits.noteOpen(ORIGIN, idleMs)
            expect(limits.reuseMs(ORIGIN)).toBeLessThanOrEqual(limitMs * 0.75)
          }
        },
      ),
    )
  })

  test('of 4,096 origins is remembered, and of more those that were used last', () => {
    const limits = buildIdleLimits()
    const note = (at: number) => limits.noteClosed(`https://${at}.example.com`, 100)
    for (let at = 0; at < 4_096; at += 1) note(at)
    expect(limits.reuseMs('https://0.example.com')).toBe(50)
    note(4_096)
    expect(limits.reuseMs('https://0.example.com')).toBe(50)
    expect(limits.reuseMs('https://1.example.com')).toBe(1_000)
    expect(limits.reuseMs('https://2.example.com')).toBe(50)
  })
})

test.each([
  ['timeout=5', 5_000],
  ['timeout=5, max=100', 5_000],
  ['max=100, timeout=2', 2_000],
  ['Timeout=7', 7_000],
  ['timeout=', undefined],
  ['timeout=5s', undefined],
  ['xtimeout=5', undefined],
  ['timeout=99999999', undefined],
  [undefined, undefined],
])('the header Keep-Alive %s says %s ms', (value, expected) => {
  expect(readKeepAlive(value)).toBe(expected)
})
