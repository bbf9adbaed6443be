import { Counter, Gauge, type Registry } from 'prom-client'
import type { PoolState } from '../postgres/pool-guard.ts'

/** What the metrics of the connections to the database are read from. */
export interface DatabaseMetricsDeps {
  /** The pools of this process by name. */
  pools: Readonly<Record<string, () => PoolState>>
  /** How often the listening connection was opened again. */
  countListenReconnects: () => number
}

/** Adds the metrics of the connections of this process. They need no database. */
export function addDatabaseMetrics({ pools, countListenReconnects }: DatabaseMetricsDeps, registry: Registry): void {
  const registers = [registry]
  const labelNames = ['pool'] as const
  const readEach = (set: (pool: string, state: PoolState) => void) => {
    for (const [pool, read] of Object.entries(pools)) set(pool, read())
  }
  new Gauge({
    name: 'database_breaker_open',
    help: 'Whether callers are refused at once, because the last connections of the pool failed: 1 or 0.',
    labelNames,
    registers,
    collect() {
      readEach((pool, state) => this.set({ pool }, state.isOpen ? 1 : 0))
    },
  })
  new Gauge({
    name: 'database_connections_awaited',
    help: 'Callers that wait for a connection of the pool.',
    labelNames,
    registers,
    collect() {
      readEach((pool, state) => this.set({ pool }, state.waiting))
    },
  })
  const addCounter = (name: string, help: string, pick: (state: PoolState) => number) =>
    new Counter({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset()
        readEach((pool, state) => this.inc({ pool }, pick(state)))
      },
    })
  addCounter(
    'database_refused_total',
    'Callers that were refused without a try: the breaker was open, or too many waited.',
    (state) => state.refused,
  )
  addCounter(
    'database_silent_connections_total',
    'Connections that were given up because the database did not answer.',
    (state) => state.silent,
  )
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
