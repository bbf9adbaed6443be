import type { IntakeCounts } from '../../carriage/intake/intake.ts'
import type { EventLogFacts } from '../../carriage/relay/log-facts.ts'
import type { RelayCounts } from '../../carriage/relay/relay-turn.ts'
import type { Instruments } from './instruments.ts'

/** Facts of this process, where it appends. */
export interface EventLogMetricsDeps {
  isConnected: () => boolean | undefined
}

/** The metrics of the relay of this process. */
export function buildRelayMetrics({ isConnected }: EventLogMetricsDeps, metrics: Instruments): RelayCounts {
  const events = metrics.counter('event_log_events_total', 'Events that this process appended to the event log.')
  const failures = metrics.counter(
    'event_log_failures_total',
    'Attempts of this process to use the event log that failed.',
  )
  const losses = metrics.counter(
    'event_log_losses_total',
    'Losses that this process found in the event log, after which it published events again.',
    ['loss'],
  )
  metrics.gauge('event_log_connected', '1 while this process is connected to the event log, else 0.', [], (gauge) =>
    gauge.set(isConnected() ? 1 : 0),
  )
  events.inc(0)
  failures.inc(0)
  for (const loss of ['replaced', 'behind'] as const) losses.inc({ loss }, 0)
  return {
    onAppended: (count) => events.inc(count),
    onFailed: () => failures.inc(),
    onLoss: (loss) => losses.inc({ loss }),
  }
}

/** The metrics of what this process takes in from the event log, of home and all cells. */
export function buildIntakeMetrics(metrics: Instruments): IntakeCounts {
  const events = metrics.counter(
    'event_log_taken_total',
    'Events of other databases that this process took in from the event log.',
  )
  const failures = metrics.counter(
    'event_log_intake_failures_total',
    'Attempts of this process to take in that failed.',
  )
  const faults = metrics.counter(
    'event_log_intake_faults_total',
    'Positions that this process could not read on from; it read the event log again from a time.',
    ['fault'],
  )
  events.inc(0)
  failures.inc(0)
  for (const fault of ['replaced', 'ahead', 'expired'] as const) faults.inc({ fault }, 0)
  return {
    onTaken: (count) => events.inc(count),
    onFailed: () => failures.inc(),
    onFault: (fault) => faults.inc({ fault }),
  }
}

/** The metrics of the event log of all processes. */
export function buildEventLogMetrics(metrics: Instruments): (facts: EventLogFacts) => void {
  const waiting = metrics.gauge(
    'event_log_waiting',
    'Events that wait for the event log; 10000 stands for that many or more.',
  )
  const oldest = metrics.gauge('event_log_oldest_waiting_seconds', 'Age of the oldest of these; 0 when none waits.')
  const again = metrics.gauge('event_log_republishing', '1 while events are published again, else 0.')
  return (facts) => {
    waiting.set(facts.waiting)
    oldest.set(facts.oldest_waiting_s)
    again.set(facts.republishing_from === null ? 0 : 1)
  }
}
