import { isUuid } from '../../base/id.ts'
import { isStorableText } from '../../base/stored-text.ts'
import { INSTANT_RULE, parseInstant } from '../shape/instant.ts'

/** The type by which values of a list field are parsed and compared. */
export type ListFieldType = 'text' | 'uuid' | 'integer' | 'boolean' | 'timestamp'

/** A parsed value: text and uuid as string, integer as number, timestamp as Date. */
export type ListValue = string | number | boolean | Date

/** The rule for a value of each type, in words that complete "must be ...". */
export const VALUE_RULES: Readonly<Record<ListFieldType, string>> = {
  text: 'text without the character U+0000',
  uuid: 'a UUID in lower case',
  integer: 'a whole number, at most 15 digits',
  boolean: 'true or false',
  timestamp: `${INSTANT_RULE}, precise to the millisecond at most (offsets are accepted; encode + as %2B)`,
}

const INTEGER_PATTERN = /^-?\d{1,15}$/
/** Columns are precise to the millisecond, so a finer value would equal none. */
const FINER_THAN_MILLISECONDS = /\.\d{4}/

/** Parses one value of a filter or a cursor, strictly; undefined when `text` is not of this type. */
export function parseValue(type: ListFieldType, text: string): ListValue | undefined {
  switch (type) {
    case 'text':
      return isStorableText(text) ? text : undefined
    case 'uuid':
      return isUuid(text) ? text : undefined
    case 'integer':
      return INTEGER_PATTERN.test(text) ? Number(text) : undefined
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    case 'timestamp':
      return FINER_THAN_MILLISECONDS.test(text) ? undefined : parseInstant(text)
  }
}

/** The text that `parseValue` parses to the same value. */
export function formatValue(value: ListValue): string {
  return value instanceof Date ? value.toISOString() : String(value)
}

/** Splits values at commas; `\,` is a comma, `\\` a backslash, as any other one (docs/contract/api.md#filters). */
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

/** The text of a filter that `splitValues` splits into `values`. */
export function joinValues(values: readonly string[]): string {
  return values.map((value) => value.replace(/[\\,]/g, '\\$&')).join(',')
}
