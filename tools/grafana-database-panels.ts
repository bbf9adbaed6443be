import { course, ONLY } from './grafana-panel.ts'

/** The connections of each process to the database, and to its replica. */
export const DATABASE_PANELS = [
  course('Connections to the database that failed', 'Callers refused, silent connections, lost listening ones.', {
    unit: 'short',
    queries: [
      { expr: `sum by (pool) (increase(database_refused_total${ONLY}[1m]))`, legend: 'refused: {{pool}}' },
      { expr: `sum by (pool) (increase(database_silent_connections_total${ONLY}[1m]))`, legend: 'silent: {{pool}}' },
      { expr: `sum(increase(database_listen_reconnects_total${ONLY}[1m]))`, legend: 'listening' },
      { expr: `sum(increase(database_primary_switches_total${ONLY}[1m]))`, legend: 'another primary' },
    ],
  }),
  course('Reads on the replica', 'By the server that they got; 0 for processes that do not use their replica.', {
    unit: 'short',
    queries: [
      { expr: `sum by (server) (rate(database_replica_reads_total${ONLY}[1m]))`, legend: 'reads: {{server}}' },
      { expr: `min(database_replica_used${ONLY})`, legend: 'used' },
      { expr: `max(database_replica_lag_bytes${ONLY})`, legend: 'lag in bytes' },
    ],
  }),
  course('Callers that wait for the database', 'For a connection; 1 for each breaker that is open.', {
    unit: 'short',
    queries: [
      { expr: `sum by (pool) (database_connections_awaited${ONLY})`, legend: '{{pool}}' },
      { expr: `sum by (pool) (database_breaker_open${ONLY})`, legend: 'breaker: {{pool}}' },
    ],
  }),
]
