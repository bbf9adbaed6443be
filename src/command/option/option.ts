import { InvalidArgumentError } from 'commander'
import { isUuid } from '../../base/id.ts'

/** Parses an option that may be repeated. */
export const collect = (text: string, texts: string[] = []) => [...texts, text]

/** Parses an option that is an id. */
export function parseId(text: string): string {
  if (isUuid(text)) return text
  throw new InvalidArgumentError('It must be a UUID in lower case.')
}

/** Builds the parser of a whole number within bounds; `of` says of what: ` of seconds`. */
export function parseNumber(least: number, most: number, of = ''): (text: string) => number {
  return (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number${of} from ${least} to ${most}.`)
  }
}

/** The instant of UTC that a text writes in full; undefined for any other text. */
export function readInstant(text: string): Date | undefined {
  const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/.test(text) ? new Date(text) : undefined
  return instant && Number.isNaN(instant.getTime()) ? undefined : instant
}
