import { joinValues } from '../../http/listing/value.ts'

/** The selected event types: names, and names with `*` for a word or more (`contract.*`, `*.delete`, `*`). */
export interface EventPatterns {
  /** The given patterns; empty for all. */
  texts: readonly string[]
  matches: (event: string) => boolean
  /** Filters that the service can apply; their results still have to match. */
  filters: readonly string[]
}

/** The event type of the poll itself: with a subscriber, each read of the list records an event. */
const OWN_EVENT = 'event-occurrence.find-all'

const PATTERN = /^[a-z0-9*-]+(?:\.[a-z0-9*-]+)?$/

/** Parses a comma-separated list of patterns. Throws an Error with the rule. Without a list, all events match. */
export function parseEventPatterns(list: string | undefined): EventPatterns {
  const texts = (list ?? '')
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
  const broken = texts.find((text) => !PATTERN.test(text) || (!text.includes('.') && text !== '*'))
  if (broken !== undefined || (list !== undefined && texts.length === 0))
    throw new Error(
      `"${broken ?? list}" is not an event type or pattern; write contract.update, contract.*, *.delete or *`,
    )
  return { texts, matches: buildMatcher(texts), filters: buildFilters(texts) }
}

function buildMatcher(texts: readonly string[]): (event: string) => boolean {
  const patterns = texts.map((text) => new RegExp(`^${text.replaceAll('.', '\\.').replaceAll('*', '.*')}$`))
  return (event) => {
    // A wildcard excludes it; its name includes it.
    if (event === OWN_EVENT) return texts.includes(OWN_EVENT)
    return patterns.length === 0 || patterns.some((pattern) => pattern.test(event))
  }
}

function buildFilters(texts: readonly string[]): string[] {
  const isExact = texts.every((text) => !text.includes('*'))
  if (texts.length > 0 && isExact) return [`event|in|${joinValues(texts)}`]
  return texts.includes(OWN_EVENT) ? [] : [`event|ne|${OWN_EVENT}`]
}

/** The patterns that none of these event types match. */
export function findUnmatched({ texts }: EventPatterns, eventTypes: readonly string[]): string[] {
  return texts.filter((text) => {
    const matches = buildMatcher([text])
    return !eventTypes.some(matches)
  })
}
