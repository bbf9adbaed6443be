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
    '1 while the circuit breaker of the pool is open and rejects callers at once; else 0.',
    ['pool'],
    (gauge) => each((labels, { isOpen }) => gauge.set(labels, isOpen ? 1 : 0)),
  )
  metrics.gauge('database_connections_awaited', 'Callers waiting for a connection of the pool.', ['pool'], (gauge) =>
    each((labels, { waiting }) => gauge.set(labels, waiting)),
  )
  metrics.counter(
    'database_refused_total',
    'Callers rejected without an attempt: the breaker was open, or too many callers waited.',
    ['pool'],
    (counter) => {
      counter.reset()
      each((labels, { refused }) => counter.inc(labels, refused))
    },
  )
  metrics.counter(
    'database_silent_connections_total',
    'Connections discarded because the database did not answer.',
    ['pool'],
    (counter) => {
      counter.reset()
      each((labels, { silent }) => counter.inc(labels, silent))
    },
  )
  metrics.counter(
    'database_listen_reconnects_total',
    'LISTEN connections opened in place of a closed or silent one.',
    [],
    (counter) => {
      counter.reset()
      counter.inc(countListenReconnects())
    },
  )
}
