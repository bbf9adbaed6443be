import type { PoolState } from '../../postgres/connection/pool-guard.ts'
import type { Instruments } from './instruments.ts'

/** Sources of the metrics of database connections. */
export interface DatabaseMetricsDeps {
  /** The pools of this process by name. */
  pools: Readonly<Record<string, () => PoolState>>
  /** Number of replacements of the listening connection. */
  countListenReconnects: () => number
}

/** Adds the metrics of the connections of this process. They need no database. */
export function addDatabaseMetrics({ pools, countListenReconnects }: DatabaseMetricsDeps, metrics: Instruments): void {
  const each = (set: (labels: { pool: string }, state: PoolState) => void) => {
    for (const [pool, read] of Object.entries(pools)) set({ pool }, read())
  }
  metrics.gauge(
    'database_breaker_open',
    'Whether callers are refused at once, because the last connections of the pool failed: 1 or 0.',
    ['pool'],
    (gauge) => each((labels, { isOpen }) => gauge.set(labels, isOpen ? 1 : 0)),
  )
  metrics.gauge('database_connections_awaited', 'Callers that wait for a connection of the pool.', ['pool'], (gauge) =>
    each((labels, { waiting }) => gauge.set(labels, waiting)),
  )
  metrics.counter(
    'database_refused_total',
    'Callers that were refused without a try: the breaker was open, or too many waited.',
    ['pool'],
    (counter) => {
      counter.reset()
      each((labels, { refused }) => counter.inc(labels, refused))
    },
  )
  metrics.counter(
    'database_silent_connections_total',
    'Connections that were given up because the database did not answer.',
    ['pool'],
    (counter) => {
      counter.reset()
      each((labels, { silent }) => counter.inc(labels, silent))
    },
  )
  metrics.counter(
    'database_listen_reconnects_total',
    'Listening connections that were opened in place of one that ended or was silent.',
    [],
    (counter) => {
      counter.reset()
      counter.inc(countListenReconnects())
    },
  )
}
