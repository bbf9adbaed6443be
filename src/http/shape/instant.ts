import { buildFieldProblem } from '../problem/problem.ts'

/** The rule for an instant, in words that complete "must be ...". */
export const INSTANT_RULE = 'an instant like 2026-09-11T08:00:00.000Z of the years 1970 to 9999 in UTC'

/**
 * The first and the last instant the service stores or compares with. `Date`, PostgreSQL and ISO 8601 write both with four
 * digits for the year; `9999-12-31T23:59:59-23:59` is of the year 10000 in UTC and needs five.
 */
export const FIRST_INSTANT = new Date('1970-01-01T00:00:00.000Z')
export const LAST_INSTANT = new Date('9999-12-31T23:59:59.999Z')

const INSTANT_PATTERN =
  /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Parses a date-time of RFC 3339 with an offset; digits after the millisecond are cut off. Undefined for any other text,
 * for a day that does not exist, for a leap second, and for an instant outside the years 1970 to 9999 in UTC.
 */
export function parseInstant(text: string): Date | undefined {
  const match = INSTANT_PATTERN.exec(text)
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  if (month < 1 || month > 12 || day < 1 || day > countDays(year, month)) return undefined
  const instant = new Date(text)
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT ? instant : undefined
}

/** Days of a month. The calendar repeats after 400 years; `Date.UTC` reads years below 100 as of the 20th century. */
function countDays(year: number, month: number): number {
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

/** The instant of a member of a request. Throws 422 `validation_failed` at `path` for text that `parseInstant` refuses. */
export function readInstant(path: string, text: string): Date {
  const instant = parseInstant(text)
  if (!instant)
    throw buildFieldProblem({
      path,
      code: 'format',
      message: `must be ${INSTANT_RULE}`,
      params: { format: 'date-time' },
    })
  return instant
}
