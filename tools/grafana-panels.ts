import { DATABASE_PANELS } from './grafana-database-panels.ts'
import { CELLS, EVENT_LOG, REALTIME_BUS } from './grafana-event-log.ts'
import {
  course,
  ONLY,
  ofProcess,
  percentiles,
  perSecond,
  RATE,
  type Row,
  rateBy,
  shared,
  sharedRateBy,
  stat,
} from './grafana-panel.ts'

const OVERVIEW: Row = {
  title: 'Now',
  panels: [
    stat('Processes scraped', 'Processes that answer the scraper.', {
      unit: 'none',
      queries: [{ expr: `count(database_up${ONLY})`, legend: 'processes' }],
    }),
    stat('Database', '1 while the database answers every process.', {
      unit: 'none',
      limits: { orange: 1, red: 0 },
      queries: [{ expr: `min(database_up${ONLY})`, legend: 'database' }],
    }),
    stat('Webhooks: oldest due', 'The longest wait of a due delivery or an event without routing.', {
      unit: 's',
      limits: { orange: 60, red: 300 },
      queries: [shared('webhook_out_oldest_due_seconds', 'oldest')],
    }),
    stat('Webhooks: backlog', 'Due deliveries and events without routing; 10,000 stands for that many or more.', {
      unit: 'short',
      limits: { orange: 2_000, red: 10_000 },
      queries: [shared('webhook_out_backlog', 'backlog')],
    }),
    stat('Webhooks: disabled', 'Webhooks that the service disabled and nobody activated or deleted.', {
      unit: 'short',
      limits: { orange: 1, red: 5 },
      queries: [shared('webhook_out_auto_disabled', 'disabled')],
    }),
    stat('Secrets that no key opens', 'Stored secrets that SECRET_KEY of a process does not open. Add the lost key.', {
      unit: 'short',
      limits: { orange: 1, red: 2 },
      queries: [shared('stored_secrets_unreadable', 'unreadable')],
    }),
    stat('Certificates due', 'SAML connections whose last certificate ends within 14 days or has ended.', {
      unit: 'short',
      limits: { orange: 1, red: 10 },
      queries: [{ expr: `max by (state) (connection_certificates${ONLY})`, legend: '{{state}}' }],
    }),
    stat('Provisioning: oldest due', 'The longest wait of a user with a due delivery.', {
      unit: 's',
      limits: { orange: 60, red: 300 },
      queries: [shared('provisioning_oldest_due_seconds', 'oldest')],
    }),
    stat('Provisioning: dead letters', 'Deliveries that became a dead letter within a day. Replay or dismiss them.', {
      unit: 'short',
      limits: { orange: 1, red: 10 },
      queries: [{ expr: `max(increase(provisioning_dead_letters_total${ONLY}[1d]))`, legend: 'dead letters' }],
    }),
  ],
}

const WEBHOOKS: Row = {
  title: 'Webhooks',
  panels: [
    perSecond(
      'Attempts by class of failure',
      '"none" is a success. Classes: docs/operations.md, Failed attempts.',
      rateBy('webhook_out_attempts_total', 'error'),
    ),
    perSecond(
      'Attempts by trigger',
      'Automatic attempts, tests and replays.',
      rateBy('webhook_out_attempts_total', 'trigger'),
    ),
    course('Duration of a POST', 'Over all webhooks; one that times out takes 15 s.', {
      unit: 's',
      queries: percentiles('webhook_out_attempt_duration_seconds'),
    }),
    perSecond('Deliveries by status', 'Deliveries that reached each status, of all processes and databases.', {
      expr: `sum by (status) (max by (status) (rate(webhook_out_deliveries_total${ONLY}${RATE})) or max by (cell, status) (rate(cell_deliveries_total${ONLY}${RATE})))`,
      legend: '{{status}}',
    }),
    course('Backlog', 'Grows while events come faster than POSTs end. The autoscaler reads this figure.', {
      unit: 'short',
      queries: [shared('webhook_out_backlog', 'backlog')],
    }),
    course(
      'Deliveries that wait for a limit',
      'Those of webhooks with max_per_second; 10,000 stands for that many or more.',
      {
        unit: 'short',
        queries: [shared('webhook_out_throttled', 'throttled')],
      },
    ),
    course('Oldest wait for a limit', 'How long the first of these deliveries has waited.', {
      unit: 's',
      queries: [shared('webhook_out_oldest_throttled_seconds', 'oldest')],
    }),
    course('In flight', 'POSTs in flight in each process. At WEBHOOK_CONCURRENCY the process is full.', {
      unit: 'short',
      queries: [ofProcess('webhook_out_in_flight')],
    }),
    course('Failing and disabled webhooks', 'Notices in a minute: failing, disabled, recovered.', {
      unit: 'short',
      queries: [{ expr: `sum by (event) (increase(webhook_out_notices_total${ONLY}[1m]))`, legend: '{{event}}' }],
    }),
  ],
}

const PROVISIONING: Row = {
  title: 'Provisioning',
  panels: [
    perSecond(
      'Provisioning attempts by class of failure',
      '"none" is a success.',
      rateBy('provisioning_attempts_total', 'error'),
    ),
    perSecond(
      'Ended provisioning deliveries',
      'By the status in which they ended, of all processes.',
      sharedRateBy('provisioning_deliveries_total', 'status'),
    ),
    course('Users with a due delivery', 'Over all targets.', {
      unit: 'short',
      queries: [shared('provisioning_backlog', 'backlog')],
    }),
  ],
}

const REALTIME: Row = {
  title: 'Realtime',
  panels: [
    perSecond(
      'Messages by status',
      '"log_only": no provider is set, nothing was published.',
      rateBy('realtime_messages_total', 'status'),
    ),
    course('Failed messages by class', 'Attempts of messages that failed.', {
      unit: 'ops',
      queries: [
        {
          expr: `sum by (error) (rate(realtime_messages_total{job=~"$job",error!="none"}${RATE}))`,
          legend: '{{error}}',
        },
      ],
    }),
    course('Duration of a publication', 'The call that published a message.', {
      unit: 's',
      queries: percentiles('realtime_publish_duration_seconds'),
    }),
    perSecond(
      'Requests to the provider',
      'By outcome: ok, rejected, failed.',
      rateBy('realtime_provider_requests_total', 'outcome'),
    ),
    perSecond('Authorizations of channels', 'Granted and refused.', rateBy('realtime_authorizations_total', 'answer')),
    perSecond('Events of the provider', 'Events of its webhooks.', rateBy('realtime_provider_events_total', 'name')),
    course('Events of channels', 'Events of channels of the embedded server; dropped ones are not in the inspector.', {
      unit: 'ops',
      queries: [
        {
          expr: `sum by (name, outcome) (rate(realtime_channel_events_total{job=~"$job"}${RATE}))`,
          legend: '{{name}} {{outcome}}',
        },
      ],
    }),
    REALTIME_BUS,
  ],
}

const REQUESTS: Row = {
  title: 'Requests',
  panels: [
    course('Answers by class', 'Answers to requests of the API.', {
      unit: 'reqps',
      queries: [rateBy('http_responses_total', 'class')],
    }),
    course('Requests by status', 'Answered requests.', {
      unit: 'reqps',
      queries: [rateBy('http_request_duration_seconds_count', 'status')],
    }),
    course('Duration of a request', 'Over all routes.', {
      unit: 's',
      queries: percentiles('http_request_duration_seconds'),
    }),
    course('Slowest routes', 'The ten routes with the largest 95th percentile.', {
      unit: 's',
      queries: [
        {
          expr: `topk(10, histogram_quantile(0.95, sum by (le, method, route) (rate(http_request_duration_seconds_bucket${ONLY}${RATE}))))`,
          legend: '{{method}} {{route}}',
        },
      ],
    }),
    course('Answers 5xx by route', 'The log has the request ids.', {
      unit: 'reqps',
      queries: [
        {
          expr: `sum by (method, route) (rate(http_request_duration_seconds_count{job=~"$job",status=~"5.."}${RATE}))`,
          legend: '{{method}} {{route}}',
        },
      ],
    }),
  ],
}

const PROCESSES: Row = {
  title: 'Processes',
  panels: [
    course('Processes by role', 'How many processes have each role.', {
      unit: 'short',
      queries: [{ expr: `sum by (role) (signalbox_role${ONLY})`, legend: '{{role}}' }],
    }),
    course('Versions', 'Processes of each version. Two at a time are a rolling upgrade.', {
      unit: 'short',
      queries: [
        {
          expr: `count by (version, node_version) (signalbox_build_info${ONLY})`,
          legend: '{{version}}, Node {{node_version}}',
        },
      ],
    }),
    perSecond(
      'Sign-ins by connections',
      'By the reason of the refusal; "none" is a success. The page of a connection shows its own.',
      rateBy('connection_sign_ins_total', 'reason'),
    ),
    course('Processor', 'Cores in use. A process uses little more than one.', {
      unit: 'short',
      queries: [{ expr: `rate(process_cpu_seconds_total${ONLY}${RATE})`, legend: '{{instance}}' }],
    }),
    course('Memory', 'Resident memory.', { unit: 'bytes', queries: [ofProcess('process_resident_memory_bytes')] }),
    course('Heap', 'Used heap of JavaScript.', { unit: 'bytes', queries: [ofProcess('nodejs_heap_size_used_bytes')] }),
    course('Delay of the event loop', '99th percentile. Over 0.1 s the process has too much to do.', {
      unit: 's',
      queries: [ofProcess('nodejs_eventloop_lag_p99_seconds')],
    }),
    course('Garbage collection', 'Share of the time.', {
      unit: 'percentunit',
      queries: [
        { expr: `sum by (instance) (rate(nodejs_gc_duration_seconds_sum${ONLY}${RATE}))`, legend: '{{instance}}' },
      ],
    }),
    course('Open files and connections', 'Beside the limit of the process.', {
      unit: 'short',
      queries: [ofProcess('process_open_fds'), { expr: `min(process_max_fds${ONLY})`, legend: 'limit' }],
    }),
    ...DATABASE_PANELS,
    course(
      'Clock',
      'How far each machine is ahead of the database. Beyond 10 s its processes claim and delete nothing.',
      {
        unit: 's',
        queries: [ofProcess('clock_skew_seconds')],
      },
    ),
    course('Faults of a process itself', 'Attempts that were not made, and lines that are not in the log.', {
      unit: 'short',
      queries: [
        { expr: `sum by (code) (increase(signalbox_own_faults_total${ONLY}[1m]))`, legend: '{{code}}' },
        { expr: `sum by (reason) (increase(log_lines_lost_total${ONLY}[1m]))`, legend: 'log lines {{reason}}' },
      ],
    }),
    course('Sweeps', 'Rows that were deleted or changed, by step.', {
      unit: 'short',
      queries: [{ expr: `sum by (step) (increase(maintenance_rows_total${ONLY}[5m]))`, legend: '{{step}}' }],
    }),
    course('Size of the database', 'The database, and what is free on its disk where that is known.', {
      unit: 'bytes',
      queries: [
        { expr: `max(database_size_bytes${ONLY})`, legend: 'database' },
        { expr: `min(database_disk_free_bytes${ONLY})`, legend: 'free' },
      ],
    }),
    course('Time until the disk is full', 'At the growth of the last days. Never, where retention keeps up.', {
      unit: 's',
      queries: [
        { expr: `min(database_disk_full_seconds${ONLY})`, legend: 'full in' },
        { expr: `min by (cell) (cell_database_disk_full_seconds${ONLY})`, legend: '{{cell}} full in' },
      ],
    }),
    course('Uptime', 'Since the start of each process.', {
      unit: 's',
      queries: [{ expr: `time() - process_start_time_seconds${ONLY}`, legend: '{{instance}}' }],
    }),
  ],
}

/** The rows of the dashboard. */
export const ROWS: readonly Row[] = [OVERVIEW, WEBHOOKS, PROVISIONING, REALTIME, EVENT_LOG, CELLS, REQUESTS, PROCESSES]
