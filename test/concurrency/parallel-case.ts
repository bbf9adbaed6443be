import type { TestCall } from '../harness/app/app.ts'

/** The calls of one case: all the same. */
export interface Calls {
  /** For `{id}` in the path of the route. */
  id?: string
  /** For the other places of the path. */
  params?: Readonly<Record<string, string>>
  body?: unknown
  /** Who calls; the administrator unless said. */
  call?: TestCall
  /** The event that is counted, where it is not the route's own. */
  event?: string
  /** How many events are recorded, where the rule does not say it. */
  events?: number
}

/**
 * Outcome of concurrent calls. `once`: one succeeds, the others are refused with `refusal`, one event. `same`: all succeed,
 * and those after the first change nothing, one event. `each`: all succeed, each with its event.
 */
type Refusal = 401 | 404 | 409 | 410 | 422
export type Rule = { of: 'once'; refusal: Refusal } | { of: 'same' } | { of: 'each' }

export const onceElse = (refusal: Refusal): Rule => ({ of: 'once', refusal })
export const SAME: Rule = { of: 'same' }
export const EACH: Rule = { of: 'each' }
