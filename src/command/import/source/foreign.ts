import { FatalError } from '../../../app/log/fatal.ts'

/** A JSON object of another system, of unknown shape. */
export type Foreign = Readonly<Record<string, unknown>>

/** Longest id or name of another system, in characters. Most have some 36. */
const MAX_ID = 1024

/** Longest text of any other kind that is read. */
const MAX_TEXT = 4096

/** Most entries of a list within one row. */
const MAX_ENTRIES = 1000

export const isObject = (value: unknown): value is Foreign =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value as an object. Throws a `FatalError` that names the place. */
export function readObject(value: unknown, place: string): Foreign {
  if (isObject(value)) return value
  throw new FatalError(
    `${place} is not an object. Check that --from is the address, or an export, of the source named.`,
  )
}

/** The value as a list. Throws a `FatalError` that names the place. */
export function readList(value: unknown, place: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new FatalError(`${place} is not a list. Check that --from is the address, or an export, of the source named.`)
}

/** The id of a row, by which a later run recognizes it. Throws a `FatalError` without one. */
export function readId(row: Foreign, member: string): string {
  const id = row[member]
  if (typeof id === 'string' && id !== '' && id.length <= MAX_ID && id.isWellFormed()) return id
  throw new FatalError(`A row of the source has no usable id: ${member} must be a text of 1 to ${MAX_ID} characters.`)
}

/** An optional text; undefined where it is missing, empty, of another type or too long. */
export function findText(row: Foreign, member: string): string | undefined {
  const text = row[member]
  return typeof text === 'string' && text !== '' && text.length <= MAX_TEXT ? text : undefined
}

/** A text of several words for one line: without control and format characters, at most `length` long; undefined for nothing. */
export function toLine(text: string | undefined, length: number): string | undefined {
  if (text === undefined) return undefined
  const plain = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/gu, ' ')
  // A cut pair of surrogates leaves one, which is no character.
  const cut = plain
    .trim()
    .slice(0, length)
    .toWellFormed()
    .replace(/\ufffd$/, '')
    .trim()
  return cut === '' ? undefined : cut
}

/** Texts of a list; undefined when it is no list of texts, or longer than a row may have. */
export function findTexts(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_ENTRIES) return undefined
  const texts = value.filter((text): text is string => typeof text === 'string' && text.length <= MAX_ID)
  return texts.length === value.length ? [...new Set(texts)] : undefined
}

/** Texts by their names; undefined when a value is none. Empty for null and a missing object. */
export function findTextMap(value: unknown): Map<string, string> | undefined {
  if (value === null || value === undefined) return new Map()
  if (!isObject(value)) return undefined
  const entries = Object.entries(value)
  const isWhole = entries.length <= MAX_ENTRIES && entries.every(([, text]) => typeof text === 'string')
  return isWhole ? new Map(entries as [string, string][]) : undefined
}

/** Whether a filter of another system leaves anything out: an object or a list with a member. */
export function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return (
    isObject(value) &&
    Object.values(value).some((member) => member !== null && (typeof member !== 'object' || isFilled(member)))
  )
}
