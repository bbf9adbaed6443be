import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { PoolState } from '../../postgres/connection/pool-guard.ts'

/** Sources of the metrics of database connections. */
export interface DatabaseMetricsDeps {
  /** The pools of this process by name. */
  pools: Readonly<Record<string, () => PoolState>>
  /** Number of replacements of the listening connection. */
  countListenReconnects: () => number
}

/** Adds the metrics of the connections of this process. They need no database. */
export function addDatabaseMetrics({ pools, countListenReconnects }: DatabaseMetricsDeps, registry: Registry): void {
  const registers = [registry]
  const each = (set: (labels: { pool: string }, state: PoolState) => void) => {
    for (const [pool, read] of Object.entries(pools)) set({ pool }, read())
  }
  new Gauge({
    name: 'database_breaker_open',
    help: 'Whether callers are refused at once, because the last connections of the pool failed: 1 or 0.',
    labelNames: ['pool'],
    registers,
    collect() {
      each((labels, { isOpen }) => this.set(labels, isOpen ? 1 : 0))
    },
  })
  new Gauge({
    name: 'database_connections_awaited',
    help: 'Callers that wait for a connection of the pool.',
    labelNames: ['pool'],
    registers,
    collect() {
      each((labels, { waiting }) => this.set(labels, waiting))
    },
  })
  new Counter({
    name: 'database_refused_total',
    help: 'Callers that were refused without a try: the breaker was open, or too many waited.',
    labelNames: ['pool'],
    registers,
    collect() {
      this.reset()
      each((labels, { refused }) => this.inc(labels, refused))
    },
  })
  new Counter({
    name: 'database_silent_connections_total',
    help: 'Connections that were given up because the database did not answer.',
    labelNames: ['pool'],
    registers,
    collect() {
      this.reset()
      each((labels, { silent }) => this.inc(labels, silent))
    },
  })
  new Counter({
    name: 'database_listen_reconnects_total',
    help: 'Listening connections that were opened in place of one that ended or was silent.',
    registers,
    collect() {
      this.reset()
      this.inc(countListenReconnects())
    },
  })
}
