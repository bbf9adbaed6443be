import { isUuid } from '../id.ts'

/** How the values of a list field are read and compared. */
export type ListFieldType = 'text' | 'uuid' | 'integer' | 'boolean' | 'timestamp'

/** A value once read: text and uuid as string, integer as number, timestamp as Date. */
export type ListValue = string | number | boolean | Date

/** What a value of each type has to be, in words that finish "must be ...". */
export const VALUE_RULES: Readonly<Record<ListFieldType, string>> = {
  text: 'text without the character U+0000',
  uuid: 'a UUID in lower case',
  integer: 'a whole number, at most 15 digits',
  boolean: 'true or false',
  timestamp: 'an instant like 2026-09-11T08:00:00.000Z (offsets are taken; write + as %2B)',
}

const INTEGER_PATTERN = /^-?\d{1,15}$/
const TIMESTAMP_PATTERN =
  /^(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.\d{1,3})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Reads one value of a filter or a cursor, strictly; undefined when `text` is not of this type. */
export function parseValue(type: ListFieldType, text: string): ListValue | undefined {
  switch (type) {
    case 'text':
      return text.includes('\u0000') ? undefined : text
    case 'uuid':
      return isUuid(text) ? text : undefined
    case 'integer':
      return INTEGER_PATTERN.test(text) ? Number(text) : undefined
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    case 'timestamp':
      return parseTimestamp(text)
  }
}

/** RFC 3339 with at most milliseconds (D2). A day the calendar does not have, or a year PostgreSQL does not, is refused. */
function parseTimestamp(text: string): Date | undefined {
  const match = TIMESTAMP_PATTERN.exec(text)
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  if (month < 1 || month > 12 || day < 1 || day > new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate())
    return undefined
  const instant = new Date(text)
  const utcYear = instant.getUTCFullYear()
  return utcYear >= 1 && utcYear <= 9999 ? instant : undefined
}

/** The text that `parseValue` reads back to the same value. */
export function formatValue(value: ListValue): string {
  return value instanceof Date ? value.toISOString() : String(value)
}

/**
 * Splits the values of a filter at commas. `\,` is a literal comma and `\\` a literal backslash (D5); a backslash before
 * anything else stands for itself, so `C:\temp` needs no escaping.
 */
export function splitValues(text: string): string[] {
  const values: string[] = []
  let value = ''
  for (let at = 0; at < text.length; at += 1) {
    const next = text[at + 1]
    if (text[at] === '\\' && (next === ',' || next === '\\')) {
      value += next
      at += 1
    } else if (text[at] === ',') {
      values.push(value)
      value = ''
    } else {
      value += text[at]
    }
  }
  values.push(value)
  return values
}

/** The text of a filter that `splitValues` reads back as `values`. */
export function joinValues(values: readonly string[]): string {
  return values.map((value) => value.replace(/[\\,]/g, '\\$&')).join(',')
}
