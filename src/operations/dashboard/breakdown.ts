import type { Share } from './breakdown.store.ts'
import type { Range } from './series.ts'

/** Ranges of a breakdown: it begins at a whole multiple of `stepMs`, the width of its narrowest sums. */
const SPANS: Readonly<Record<Range, { stepMs: number; count: number }>> = {
  '1h': { stepMs: 300_000, count: 12 },
  '24h': { stepMs: 3_600_000, count: 24 },
  '7d': { stepMs: 86_400_000, count: 7 },
  '30d': { stepMs: 86_400_000, count: 30 },
}

/** The hour and the one before, for a webhook: its narrowest sums are those of hours. */
const HOUR_OF_WEBHOOK = { stepMs: 3_600_000, count: 2 }

/** Event types of one breakdown (docs/contract/delivery.md#dashboard-breakdown). */
const EVENT_TYPES_LIMIT = 50

/** The start of a range that ends now, of a webhook or of all. Pure. */
export function findBreakdownStart(range: Range, now: Date, of: 'webhook' | 'all'): Date {
  const { stepMs, count } = of === 'webhook' && range === '1h' ? HOUR_OF_WEBHOOK : SPANS[range]
  return new Date((Math.floor(now.getTime() / stepMs) - count + 1) * stepMs)
}

/** Attempts by answer and by event type, the most frequent first. */
export interface Breakdown {
  attempts: number
  failed: number
  answers: { answer: string; attempts: number }[]
  /** The first of them. */
  events: { event: string; attempts: number; failed: number }[]
  eventTypes: number
}

/** Builds the breakdown of sums, with `limit` event types. Every attempt has one answer, so these add up to all of them. Pure. */
export function buildBreakdown(shares: readonly Share[], limit = EVENT_TYPES_LIMIT): Breakdown {
  const ordered = shares.toSorted((a, b) => b.attempts - a.attempts || a.measure.localeCompare(b.measure))
  const pick = (prefix: string) =>
    ordered
      .filter(({ measure }) => measure.startsWith(prefix))
      .map(({ measure, attempts, failed }) => ({ name: measure.slice(prefix.length), attempts, failed }))
  const [answers, events] = [pick('answer:'), pick('event:')]
  return {
    attempts: answers.reduce((sum, { attempts }) => sum + attempts, 0),
    failed: answers.reduce((sum, { failed }) => sum + failed, 0),
    answers: answers.map(({ name, attempts }) => ({ answer: name, attempts })),
    events: events.slice(0, limit).map(({ name, ...counts }) => ({ event: name, ...counts })),
    eventTypes: events.length,
  }
}
