/** Parts of panels of the dashboard. */

/** A query of a panel; `legend` names its series. */
export interface Query {
  expr: string
  legend: string
}

/** A panel: what it shows, what to do with it, the unit in Grafana's names, and its queries. */
export interface Panel {
  title: string
  description: string
  unit: string
  /** `stat`: the newest figure. `timeseries`: the course. */
  kind: 'stat' | 'timeseries'
  /** Of a stat: the values from which it turns orange and red. With `red` under `orange` it is red below `orange`. */
  limits?: { orange: number; red: number }
  queries: Query[]
}

export interface Row {
  title: string
  panels: Panel[]
}

/** Grafana replaces both; the interval is at least four scrapes. */
export const ONLY = '{job=~"$job"}'
export const RATE = '[$__rate_interval]'

export function stat(title: string, description: string, rest: Omit<Panel, 'kind' | 'title' | 'description'>): Panel {
  return { kind: 'stat', title, description, ...rest }
}

export function course(title: string, description: string, rest: { unit: string; queries: Query[] }): Panel {
  return { kind: 'timeseries', title, description, ...rest }
}

/** The course of a rate, in operations per second. */
export function perSecond(title: string, description: string, rate: Query): Panel {
  return course(title, description, { unit: 'ops', queries: [rate] })
}

/** The rate of a counter of the processes, summed over them by a label. */
export function rateBy(metric: string, label: string): Query {
  return { expr: `sum by (${label}) (rate(${metric}${ONLY}${RATE}))`, legend: `{{${label}}}` }
}

/** The rate of a counter that all processes read from the database: the same figure everywhere, so the largest. */
export function sharedRateBy(metric: string, label: string): Query {
  return { expr: `max by (${label}) (rate(${metric}${ONLY}${RATE}))`, legend: `{{${label}}}` }
}

/** A gauge that all processes read from the database. */
export function shared(metric: string, legend: string): Query {
  return { expr: `max(${metric}${ONLY})`, legend }
}

export function ofProcess(metric: string): Query {
  return { expr: `${metric}${ONLY}`, legend: '{{instance}}' }
}

/** The median and the two upper percentiles of a histogram of the processes. */
export function percentiles(metric: string): Query[] {
  return [0.5, 0.95, 0.99].map((part) => ({
    expr: `histogram_quantile(${part}, sum by (le) (rate(${metric}_bucket${ONLY}${RATE})))`,
    legend: `p${part * 100}`,
  }))
}
