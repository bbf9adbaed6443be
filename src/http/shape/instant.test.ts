import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Problem } from '../problem/problem.ts'
import { FIRST_INSTANT, LAST_INSTANT, parseInstant, readInstant } from './instant.ts'

describe('an instant', () => {
  test.each([
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59+00:00', '9999-12-31T23:59:59.000Z'],
    ['9999-12-31T23:59:59+23:59', '9999-12-31T00:00:59.000Z'],
    ['1969-12-31T23:00:00-01:00', '1970-01-01T00:00:00.000Z'],
    ['2024-02-29T08:00:00.5-02:30', '2024-02-29T10:30:00.500Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
  ])('%s is read as %s', (text, iso) => {
    expect(parseInstant(text)?.toISOString()).toBe(iso)
  })

  test.each([
    ['of the year 10000 in UTC', '9999-12-31T23:59:59-23:59'],
    ['of the year 10000 in UTC by a minute', '9999-12-31T23:59:59-00:01'],
    ['of the year 1969 in UTC', '1970-01-01T00:00:00+00:01'],
    ['of 1969', '1969-12-31T23:59:59.999Z'],
    ['of the year 0', '0000-01-01T00:00:00Z'],
    ['of a year with five digits', '10000-01-01T00:00:00Z'],
    ['of a year with a sign', '+010000-01-01T00:00:00Z'],
    ['of a day the calendar does not have', '2026-02-29T00:00:00Z'],
    ['of a 29th of February in 2100', '2100-02-29T00:00:00Z'],
    ['of month 13', '2026-13-01T00:00:00Z'],
    ['of day 0', '2026-01-00T00:00:00Z'],
    ['of hour 24', '2026-01-01T24:00:00Z'],
    ['of a leap second', '2016-12-31T23:59:60Z'],
    ['without an offset', '2026-01-01T00:00:00'],
    ['without a time', '2026-01-01'],
    ['with a blank', '2026-01-01 00:00:00Z'],
    ['with ten digits of a second', '2026-01-01T00:00:00.0000000000Z'],
    ['with an offset of 24 hours', '2026-01-01T00:00:00+24:00'],
    ['in words', 'tomorrow'],
    ['as a number', '1757577600000'],
    ['that is empty', ''],
  ])('%s is refused', (_, text) => {
    expect(parseInstant(text)).toBeUndefined()
  })

  test('round-trips within the years 1970 to 9999 and is refused outside them', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true }), (date) => {
        const isWithin = date >= FIRST_INSTANT && date <= LAST_INSTANT
        expect(parseInstant(date.toISOString())).toEqual(isWithin ? date : undefined)
      }),
      { examples: [[FIRST_INSTANT], [LAST_INSTANT], [new Date(-1)], [new Date(LAST_INSTANT.getTime() + 1)]] },
    )
  })

  test('parsed from any text is within the bounds, so its year has four digits', () => {
    const part = (max: number) => fc.nat(max).map((number) => String(number).padStart(2, '0'))
    const texts = fc
      .tuple(fc.nat(9999), part(13), part(32), part(24), fc.constantFrom('+', '-'), part(24))
      .map(([year, ...[month, day, hour, sign, offset]]) => {
        return `${String(year).padStart(4, '0')}-${month}-${day}T${hour}:59:59${sign}${offset}:59`
      })
    fc.assert(
      fc.property(texts, (text) => {
        expect(parseInstant(text)?.toISOString() ?? '2026-01-01T00:00:00.000Z').toMatch(/^\d{4}-.{18}Z$/)
      }),
    )
  })

  test('that cannot be parsed is a 422 that names its member and the rule', () => {
    const read = () => readInstant('expires_at', '9999-12-31T23:59:59-23:59')
    expect(read).toThrow(
      expect.objectContaining({
        code: 'validation_failed',
        errors: [
          {
            ...{ path: 'expires_at', code: 'format', message: expect.stringContaining('1970 to 9999') },
            params: { format: 'date-time' },
          },
        ],
      } satisfies Partial<Problem>),
    )
  })
})
