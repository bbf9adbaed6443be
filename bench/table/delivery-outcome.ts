import type { EventLoadResult } from '../publisher.ts'
import type { SinkState } from '../sink.ts'

/** Outcome of the events of a load that `isCounted` selects. */
export interface DeliveryOutcome {
  accepted: number
  delivered: number
  /** Accepted and never arrived. */
  lost: number
  /** Arrivals beyond the first of each. */
  duplicates: number
  /** Deliveries a second, from the first request to the last arrival. */
  perSecond: number
  /** From the answer to the publisher to the arrival, in the order of the events. An arrival may come before the answer. */
  latenciesMs: number[]
}

/** Compares what was accepted with what arrived. `isCounted` says it of an event's number. Pure. */
export function compareArrivals(
  load: Pick<EventLoadResult, 'startedAtMs' | 'acceptedAtMs'>,
  arrivals: Pick<SinkState, 'firstAtMs' | 'repeats'>,
  isCounted: (n: number) => boolean,
): DeliveryOutcome {
  const latenciesMs: number[] = []
  let [accepted, delivered, lastAtMs] = [0, 0, 0]
  load.acceptedAtMs.forEach((acceptedAtMs, n) => {
    if (acceptedAtMs === 0 || !isCounted(n)) return
    accepted += 1
    const arrivedAtMs = arrivals.firstAtMs[n] ?? 0
    if (arrivedAtMs === 0) return
    delivered += 1
    lastAtMs = Math.max(lastAtMs, arrivedAtMs)
    latenciesMs.push(arrivedAtMs - acceptedAtMs)
  })
  const perSecond = delivered === 0 ? 0 : delivered / ((lastAtMs - load.startedAtMs) / 1000)
  return { accepted, delivered, lost: accepted - delivered, duplicates: arrivals.repeats, perSecond, latenciesMs }
}
