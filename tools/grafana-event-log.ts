import { course, ONLY, RATE, type Row, shared } from './grafana-panel.ts'

/** The row of the event log; empty without one. */
export const EVENT_LOG: Row = {
  title: 'Event log',
  panels: [
    course('Events that wait for the event log', 'Beside the age of the oldest; 10,000 stands for that many or more.', {
      unit: 'short',
      queries: [
        shared('event_log_waiting', 'waiting'),
        shared('event_log_oldest_waiting_seconds', 'oldest, in seconds'),
        shared('event_log_republishing', 'published again'),
      ],
    }),
    course('Events appended', 'By the one process that appends; its failures, its connection, and losses of the log.', {
      unit: 'short',
      queries: [
        { expr: `sum(rate(event_log_events_total${ONLY}${RATE}))`, legend: 'events a second' },
        { expr: `sum(increase(event_log_failures_total${ONLY}[1m]))`, legend: 'failures' },
        { expr: `sum by (loss) (increase(event_log_losses_total${ONLY}[1m]))`, legend: 'lost: {{loss}}' },
        { expr: `sum(event_log_connected${ONLY})`, legend: 'connected' },
      ],
    }),
    course(
      'Events taken in',
      'By home and its cells, of each other; failures, and positions that were lost. Empty without cells.',
      {
        unit: 'short',
        queries: [
          { expr: `sum(rate(event_log_taken_total${ONLY}${RATE}))`, legend: 'events a second' },
          { expr: `sum(increase(event_log_intake_failures_total${ONLY}[1m]))`, legend: 'failures' },
          { expr: `sum by (fault) (increase(event_log_intake_faults_total${ONLY}[1m]))`, legend: 'lost: {{fault}}' },
        ],
      },
    ),
  ],
}

/** The row of cells; empty without any. */
export const CELLS: Row = {
  title: 'Cells',
  panels: [
    course('Cells that answer', 'With what is to be done, and moves of accounts that no process runs.', {
      unit: 'short',
      queries: [
        { expr: `min by (cell) (cell_up${ONLY})`, legend: '{{cell}} answers' },
        shared('cells_remedies', 'to be done'),
        shared('cells_missing', 'missing in the figures'),
        shared('account_moves_interrupted', 'interrupted moves'),
      ],
    }),
    course('Accounts of cells', 'The accounts in each cell.', {
      unit: 'short',
      queries: [{ expr: `max by (cell) (cell_accounts${ONLY})`, legend: '{{cell}}' }],
    }),
    course('Backlog of cells', 'Due deliveries and events without routing; 10,000 stands for that many or more.', {
      unit: 'short',
      queries: [{ expr: `max by (cell) (cell_backlog${ONLY})`, legend: '{{cell}}' }],
    }),
    course(
      'Waits of cells',
      'The oldest due delivery of each cell, and its oldest event that waits for the event log.',
      {
        unit: 's',
        queries: [
          { expr: `max by (cell) (cell_oldest_due_seconds${ONLY})`, legend: '{{cell}}: due' },
          { expr: `max by (cell) (cell_oldest_waiting_seconds${ONLY})`, legend: '{{cell}}: event log' },
        ],
      },
    ),
    course(
      'Deliveries of cells',
      'Deliveries that reached each status, by cell. The first row adds them up with those of home.',
      {
        unit: 'short',
        queries: [
          {
            expr: `max by (cell, status) (rate(cell_deliveries_total${ONLY}${RATE}))`,
            legend: '{{cell}}: {{status}}, a second',
          },
        ],
      },
    ),
    course('Size of cells', 'Disk space used by the database of each cell, and what is left where that is known.', {
      unit: 'bytes',
      queries: [
        { expr: `max by (cell) (cell_database_size_bytes${ONLY})`, legend: '{{cell}}' },
        { expr: `min by (cell) (cell_database_disk_free_bytes${ONLY})`, legend: '{{cell}}: free' },
      ],
    }),
    course('Reference rows of cells', 'Changes of home that a cell has not confirmed.', {
      unit: 'bytes',
      queries: [{ expr: `max by (cell) (cell_reference_lag_bytes${ONLY})`, legend: '{{cell}}' }],
    }),
  ],
}

/** A panel of the row of realtime; empty without a bus. */
export const REALTIME_BUS = course(
  'Messages between processes',
  'By the bus or through the database; repetitions, losses, and the processes for which the bus is open. Empty without a bus.',
  {
    unit: 'short',
    queries: [
      { expr: `sum by (path) (rate(realtime_bus_messages_total${ONLY}${RATE}))`, legend: 'by the {{path}}, a second' },
      { expr: `sum(increase(realtime_bus_repeats_total${ONLY}[1m]))`, legend: 'repetitions' },
      { expr: `sum(increase(realtime_bus_lost_total${ONLY}[1m]))`, legend: 'lost' },
      { expr: `sum(realtime_bus_open${ONLY})`, legend: 'open' },
    ],
  },
)
