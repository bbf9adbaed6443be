import type { DatabaseClock } from '../../base/database-clock.ts'
import type { Instruments } from './instruments.ts'

/** Metrics of what a process is on: its clock, its log, its sweeps. */
export interface ProcessMetrics {
  /** Counts the rows that a sweep removed or changed. */
  countSwept(report: Readonly<Record<string, number>>): void
}

export interface ProcessMetricsDeps {
  time?: Pick<DatabaseClock, 'skewMs'> | undefined
  /** Lines that the log lost since the start, and lines that it summed up. Default: none. */
  logCounts?: (() => { dropped: number; summed: number }) | undefined
}

/** Builds these metrics. */
export function buildProcessMetrics({ time, logCounts }: ProcessMetricsDeps, metrics: Instruments): ProcessMetrics {
  metrics.gauge(
    'clock_skew_seconds',
    "How far the clock of this process's machine is ahead of the database's; negative: behind.",
    [],
    (gauge) => gauge.set((time?.skewMs() ?? 0) / 1000),
  )
  const swept = metrics.counter(
    'maintenance_rows_total',
    'Rows deleted or changed by the sweeps of this process, by step.',
    ['step'],
  )
  const lines = metrics.counter(
    'log_lines_lost_total',
    'Lines omitted from the log of this process: "dropped" when the buffer was full, "summed" in a line that counts them.',
    ['reason'],
    (counter) => {
      const { dropped, summed } = logCounts?.() ?? { dropped: 0, summed: 0 }
      counter.inc({ reason: 'dropped' }, dropped)
      counter.inc({ reason: 'summed' }, summed)
    },
  )
  lines.inc({ reason: 'dropped' }, 0)
  return {
    countSwept: (report) => {
      for (const [step, count] of Object.entries(report)) swept.inc({ step }, count)
    },
  }
}
