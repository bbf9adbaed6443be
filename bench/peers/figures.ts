import type { ProductName } from './products.ts'

/** Figures of one product in one run. Milliseconds; undefined where a figure was not measured. */
export interface ProductFigures {
  /** One event a request from 16 clients, to 50 endpoints of 50 tenants: events a second, to the last arrival. */
  perSecond: number
  /** The same of a bare route that begins, inserts and commits, in the same run: the yardstick between machines. */
  barePerSecond?: number | undefined
  /** Processor time of the service and its stores for each delivery, in that load. */
  cpuMs?: number | undefined
  /** At 100 events a second: from the answer to the publisher to the arrival, and processor time for each delivery. */
  steadyP50Ms?: number | undefined
  steadyP99Ms?: number | undefined
  steadyCpuMs?: number | undefined
  /** At 60 events a second, while 4 of 20 endpoints never answer: latency of the other 16. */
  hangP50Ms?: number | undefined
  hangP99Ms?: number | undefined
  /** Accepted events that did not arrive, and arrivals beyond the first, over all loads. */
  lost?: number | undefined
  duplicates?: number | undefined
}

/** A run of the harness on one product. */
export interface Measurement extends ProductFigures {
  product: ProductName
  version: string
  /** `2026-11-20` */
  date: string
  /** Machine, database and settings that matter, one sentence. */
  conditions: string
}

/** A measurement as lines of a table: name, value. Pure. */
export function listFigures(figures: ProductFigures): [what: string, value: string][] {
  const { perSecond, barePerSecond } = figures
  const ratio = barePerSecond === undefined ? undefined : perSecond / barePerSecond
  const show = (value: number | undefined, digits: number) => (value === undefined ? '-' : value.toFixed(digits))
  return [
    ['events/s, one a request, to arrival', show(perSecond, 0)],
    ['the bare route, events/s', show(barePerSecond, 0)],
    ['ratio to the bare route', show(ratio, 3)],
    ['CPU ms a delivery', show(figures.cpuMs, 2)],
    ['at 100/s: accepted to arrival p50, ms', show(figures.steadyP50Ms, 2)],
    ['at 100/s: accepted to arrival p99, ms', show(figures.steadyP99Ms, 2)],
    ['at 100/s: CPU ms a delivery', show(figures.steadyCpuMs, 2)],
    ['4 of 20 hang: p50 of the others, ms', show(figures.hangP50Ms, 2)],
    ['4 of 20 hang: p99 of the others, ms', show(figures.hangP99Ms, 2)],
    ['lost', show(figures.lost, 0)],
    ['duplicates', show(figures.duplicates, 0)],
  ]
}
