import type { PoolState } from '../../postgres/connection/pool-guard.ts'
import { isUsable, type ReplicaState } from '../../postgres/connection/replica.ts'
import type { Instruments } from './instruments.ts'

/** Sources of the metrics of database connections. */
export interface DatabaseMetricsDeps {
  pools: Readonly<Record<string, () => PoolState>>
  countListenReconnects: () => number
  /** Number of changes of the primary, where the connection string names several servers. */
  countSwitches: () => number
  replica?: (() => ReplicaState) | undefined
}

/** Adds the metrics of the connections of this process. They need no database. */
export function addDatabaseMetrics(deps: DatabaseMetricsDeps, metrics: Instruments): void {
  const { pools, countListenReconnects, countSwitches, replica } = deps
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
    (counter) => each((labels, { refused }) => counter.inc(labels, refused)),
  )
  metrics.counter(
    'database_silent_connections_total',
    'Connections discarded because the database did not answer.',
    ['pool'],
    (counter) => each((labels, { silent }) => counter.inc(labels, silent)),
  )
  metrics.counter(
    'database_listen_reconnects_total',
    'LISTEN connections opened in place of a closed or silent one.',
    [],
    (counter) => counter.inc(countListenReconnects()),
  )
  metrics.counter(
    'database_primary_switches_total',
    'Times another server of the connection string became the primary.',
    [],
    (counter) => counter.inc(countSwitches()),
  )
  addReplicaMetrics(replica, metrics)
}

/** Without a replica the gauges have no samples. */
function addReplicaMetrics(replica: DatabaseMetricsDeps['replica'], metrics: Instruments): void {
  metrics.gauge(
    'database_replica_used',
    '1 while reads use the replica; 0 while it is behind, unproven or unavailable.',
    ['status'],
    (gauge) => {
      const state = replica?.()
      if (state) gauge.set({ status: state.status }, isUsable(state.status) ? 1 : 0)
    },
  )
  metrics.gauge(
    'database_replica_lag_bytes',
    'Bytes of the write-ahead log that the replica lacked at its last check.',
    [],
    (gauge) => {
      const lagBytes = replica?.().lagBytes
      if (lagBytes !== undefined) gauge.set(lagBytes)
    },
  )
  metrics.counter(
    'database_replica_reads_total',
    'Connections of reads that may use the replica, by the server that they got.',
    ['server'],
    (counter) => {
      const reads = replica?.().reads ?? { replica: 0, primary: 0 }
      for (const server of ['replica', 'primary'] as const) counter.inc({ server }, reads[server])
    },
  )
}
