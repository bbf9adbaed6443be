import type { MessageErrorClass, MessageStatus } from '../../realtime/provider/outcome.ts'
import type { Instruments } from './instruments.ts'

/** A recorded attempt of a realtime message, as far as the metrics need it. */
export interface CountedMessage {
  status: string
  error: string | null
  durationMs: number
}

/** The metrics of realtime publishing, of this process. */
export interface RealtimeMetrics {
  countMessages(messages: readonly CountedMessage[]): void
  /** Counts messages that log-only mode did not publish. */
  countUnpublished(messages: number): void
  countRequest(request: { source: string; outcome: string }): void
  countAuthorization(answer: 'granted' | 'refused'): void
  countProviderEvent(name: string): void
  /** Counts an event of a channel of the embedded server, and whether the inspector has it. */
  countChannelEvent(name: string, isRecorded: boolean): void
  /** Shows the bus between the processes of the embedded server. Called once, where there is one. */
  watchBus(read: () => BusFacts | undefined): void
}

/** Knowledge of a process about the bus; undefined before its server runs. */
export interface BusFacts {
  isOnBus: boolean | undefined
  /** Messages sent by the bus, and through the database. */
  bus: number
  database: number
  repeats: number
  losses: number
}

const ERRORS = Object.keys({
  ...{ connect: true, dns: true, tls: true, timeout: true, reset: true, protocol: true, redirect: true },
  ...{ not_json: true, http_4xx: true, http_5xx: true, interrupted: true },
} satisfies Record<MessageErrorClass, true>)

/** The errors that a message of each status may have. Each series starts at 0, so that a rate has no gap at its beginning. */
const MESSAGE_ERRORS: Readonly<Record<MessageStatus | 'log_only', readonly string[]>> = {
  published: ['none'],
  log_only: ['none'],
  retrying: ['none', ...ERRORS],
  rejected: ['http_4xx'],
  exhausted: ERRORS,
}

/** The events of webhooks of the Pusher protocol. */
const PROVIDER_EVENTS = new Set([
  'channel_occupied',
  'channel_vacated',
  'member_added',
  'member_removed',
  'client_event',
  'cache_miss',
  'subscription_count',
])

/** Builds the metrics of realtime publishing. */
export function buildRealtimeMetrics(metrics: Instruments): RealtimeMetrics {
  const messages = metrics.counter(
    'realtime_messages_total',
    'Attempts of realtime messages of this process, by resulting status; "log_only" for those not published.',
    ['status', 'error'],
  )
  const duration = metrics.histogram(
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    'realtime_publish_duration_seconds',
    'Duration of the publish call of a message.',
  )
  const requests = metrics.counter(
    'realtime_provider_requests_total',
    'Requests to the realtime provider, by source (probe or publish) and outcome (ok, rejected or failed).',
    ['source', 'outcome'],
  )
  const authorizations = metrics.counter(
    'realtime_authorizations_total',
    'Authorizations of private channels, by answer.',
    ['answer'],
  )
  const events = metrics.counter(
    'realtime_provider_events_total',
    'Events of webhooks of the realtime provider, by name; "other" for names outside the protocol.',
    ['name'],
  )
  const channelEvents = metrics.counter(
    'realtime_channel_events_total',
    'Channel events of the embedded server, by name and result: recorded, or dropped over the limit.',
    ['name', 'outcome'],
  )
  for (const [status, errors] of Object.entries(MESSAGE_ERRORS))
    for (const error of errors) messages.inc({ status, error }, 0)
  for (const source of ['probe', 'publish'])
    for (const outcome of ['ok', 'rejected', 'failed']) requests.inc({ source, outcome }, 0)
  for (const answer of ['granted', 'refused']) authorizations.inc({ answer }, 0)
  for (const name of [...PROVIDER_EVENTS, 'other']) events.inc({ name }, 0)
  for (const name of PROVIDER_EVENTS)
    for (const outcome of ['recorded', 'dropped']) channelEvents.inc({ name, outcome }, 0)
  return {
    watchBus: (read) => addBusMetrics(metrics, read),
    countChannelEvent: (name, isRecorded) => channelEvents.inc({ name, outcome: isRecorded ? 'recorded' : 'dropped' }),
    countProviderEvent: (name) => events.inc({ name: PROVIDER_EVENTS.has(name) ? name : 'other' }),
    countMessages: (recorded) => {
      for (const { status, error, durationMs } of recorded) {
        messages.inc({ status, error: error ?? 'none' })
        duration.observe(durationMs / 1000)
      }
    },
    countUnpublished: (count) => messages.inc({ status: 'log_only', error: 'none' }, count),
    countRequest: (request) => requests.inc(request),
    countAuthorization: (answer) => authorizations.inc({ answer }),
  }
}

function addBusMetrics(metrics: Instruments, read: () => BusFacts | undefined): void {
  metrics.gauge(
    'realtime_bus_open',
    '1 while the bus between the processes of the embedded realtime server is open for this process, else 0.',
    [],
    (gauge) => gauge.set(read()?.isOnBus ? 1 : 0),
  )
  metrics.counter(
    'realtime_bus_messages_total',
    'Messages of this process to the others, by the way that they took: bus or database.',
    ['path'],
    (counter) => {
      const { bus = 0, database = 0 } = read() ?? {}
      counter.inc({ path: 'bus' }, bus)
      counter.inc({ path: 'database' }, database)
    },
  )
  metrics.counter(
    'realtime_bus_repeats_total',
    'Repetitions that this process asked others for, because the bus lost messages.',
    [],
    (counter) => counter.inc(read()?.repeats ?? 0),
  )
  metrics.counter('realtime_bus_lost_total', 'Messages of other processes that could not be repeated.', [], (counter) =>
    counter.inc(read()?.losses ?? 0),
  )
}
