import { MOST_PER_SECOND } from '../../../webhook/registry/webhook.schema.ts'

/** A limit of an endpoint as a webhook takes it: `max_per_second`, and what is said of the difference. */
export interface Rate {
  maxPerSecond: number | null
  notes: readonly string[]
}

/**
 * The limit of `count` messages in `seconds` (docs/contract/webhooks.md#throttle), rounded down: the receiver gets no more than
 * before. None for a count that is no number above 0; one below a message a second is left out. Pure.
 */
export function readRate(count: unknown, seconds = 1): Rate {
  if (typeof count !== 'number' || !(count > 0) || !(seconds > 0)) return { maxPerSecond: null, notes: [] }
  const perSecond = Math.min(Math.floor(count / seconds), MOST_PER_SECOND)
  const was = `the limit of ${count} messages in ${seconds} s`
  if (perSecond < 1) return { maxPerSecond: null, notes: [`${was} is left out: 1 a second is the lowest here`] }
  if (perSecond * seconds === count) return { maxPerSecond: perSecond, notes: [] }
  return { maxPerSecond: perSecond, notes: [`${was} becomes ${perSecond} a second`] }
}

/** Seconds of a duration of Go, such as `1m30s`, or of a number of seconds; 1 for any other. Pure. */
export function readSeconds(duration: unknown): number {
  if (typeof duration === 'number') return duration
  const [whole, hours = 0, minutes = 0, seconds = 0] =
    /^(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/.exec(typeof duration === 'string' ? duration : '') ?? []
  return whole ? Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds) : 1
}
