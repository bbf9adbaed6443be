import type { ListFieldType, ListValue } from './value.ts'
import { formatValue, parseValue } from './value.ts'

/** The last row of a page: its value in the sort field, and its id. */
export interface ListPosition {
  value: ListValue
  id: string
}

/** Encodes `next_cursor` (docs/contract/api.md#cursors) with its sort, so that one of another sort is refused. */
export function encodeCursor(sort: string, position: ListPosition): string {
  return Buffer.from(JSON.stringify([sort, formatValue(position.value), position.id])).toString('base64url')
}

/** Decodes a cursor of `sort`; undefined when `encodeCursor` did not make it for this sort. */
export function decodeCursor(text: string, sort: string, type: ListFieldType): ListPosition | undefined {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) return undefined
  let content: unknown
  try {
    content = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
  if (!Array.isArray(content) || content.length !== 3) return undefined
  const [ofSort, valueText, id] = content as unknown[]
  if (ofSort !== sort || typeof valueText !== 'string' || typeof id !== 'string') return undefined
  const value = parseValue(type, valueText)
  if (value === undefined || parseValue('text', id) === undefined) return undefined
  return { value, id }
}
