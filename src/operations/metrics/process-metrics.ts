import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { DatabaseClock } from '../../base/database-clock.ts'

/** Metrics of what a process is on: its clock, its log, its sweeps. */
export interface ProcessMetrics {
  /** Counts the rows that a sweep removed or changed. */
  countSwept(report: Readonly<Record<string, number>>): void
}

export interface ProcessMetricsDeps {
  /** The clock, where it follows the database's. */
  time?: Pick<DatabaseClock, 'skewMs'> | undefined
  /** Lines that the log lost since the start, and lines that it summed up. Default: none. */
  logCounts?: (() => { dropped: number; summed: number }) | undefined
}

/** Builds these metrics. */
export function buildProcessMetrics({ time, logCounts }: ProcessMetricsDeps, registry: Registry): ProcessMetrics {
  const registers = [registry]
  new Gauge({
    name: 'clock_skew_seconds',
    help: "How far the clock of this process's machine is ahead of the database's; negative: behind.",
    registers,
    collect() {
      this.set((time?.skewMs() ?? 0) / 1000)
    },
  })
  const swept = new Counter({
    name: 'maintenance_rows_total',
    help: 'Rows that the sweeps of this process deleted or changed, by step.',
    labelNames: ['step'],
    registers,
  })
  const lines = new Counter({
    name: 'log_lines_lost_total',
    help: 'Lines that are not in the log of this process: "dropped" for want of room, "summed" in a line that counts them.',
    labelNames: ['reason'],
    registers,
    collect() {
      const { dropped, summed } = logCounts?.() ?? { dropped: 0, summed: 0 }
      this.reset()
      this.inc({ reason: 'dropped' }, dropped)
      this.inc({ reason: 'summed' }, summed)
    },
  })
  lines.inc({ reason: 'dropped' }, 0)
  return {
    countSwept: (report) => {
      for (const [step, count] of Object.entries(report)) swept.inc({ step }, count)
    },
  }
}
