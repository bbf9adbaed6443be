import type { LogErrorCode } from '../../carriage/log/log.ts'
import type { NatsFacts, SyncFact } from '../../carriage/nats/nats-inspection.ts'
import { decideEventLogFacts } from '../../carriage/relay/log-facts.ts'
import type { OutboxFacts } from '../../carriage/relay/outbox-facts.store.ts'
import { type Finding, fail, warn } from './finding.ts'

/** Copies that survive the loss of a server. */
const MIN_COPIES = 3

/** Classifies the facts of the NATS servers; `error`: they did not answer. */
export function classifyNats(
  facts: NatsFacts | { error: LogErrorCode; message: string },
  { isProduction }: { isProduction: boolean },
): Finding[] {
  if ('error' in facts && facts.error === 'refused')
    return [
      fail(
        'event_log_refused',
        facts.message,
        'Correct the login of EVENT_LOG_URL, or give its user the permissions of docs/operations/event-log.md, servers.',
      ),
    ]
  if ('error' in facts) {
    const code = facts.error === 'unsuitable' ? 'event_log_unsuitable' : 'event_log_unreachable'
    return [fail(code, facts.message, 'Correct EVENT_LOG_URL, or start the servers of NATS with JetStream.')]
  }
  const findings: Finding[] = []
  if (facts.faults.length > 0)
    findings.push(
      fail(
        'event_log_unsuitable',
        `The stream cannot hold the log: ${facts.faults.join('; ')}.`,
        'Set EVENT_LOG_STREAM to another name, or remove that stream.',
      ),
    )
  const copies = facts.replicas ?? (facts.isCluster ? MIN_COPIES : 1)
  if (isProduction && copies < MIN_COPIES)
    findings.push(
      warn(
        'event_log_one_copy',
        `The stream has ${copies} of ${MIN_COPIES} copies: with the disk of its server its events are gone.`,
        'Run three servers of NATS as a cluster, and set EVENT_LOG_REPLICAS=3.',
      ),
    )
  return findings
}

/** Classifies the disk sync of the servers: with less than `sync_interval: always` a crash loses confirmed messages. */
export function classifySync(facts: readonly SyncFact[]): Finding[] {
  const late = facts.filter(({ sync }) => sync === 'later').map(({ url }) => url)
  const unknown = facts.filter(({ sync }) => sync === 'unknown').map(({ url }) => url)
  if (late.length > 0)
    return [
      fail(
        'event_log_not_durable',
        `${late.join(', ')} confirm events before they are on disk: a loss of power loses up to two minutes of them.`,
        'Set sync_interval: always in the block jetstream of every server, and restart them one after the other.',
      ),
    ]
  if (facts.length > 0 && unknown.length === 0) return []
  return [
    warn(
      'event_log_durability_unknown',
      facts.length === 0
        ? 'Whether the servers of NATS write every event to disk before they confirm it is not known.'
        : `${unknown.join(', ')} did not say how events are written to disk.`,
      'Set EVENT_LOG_MONITOR_URLS to the monitoring ports of all servers, or look for sync_interval: always in their configuration.',
    ),
  ]
}

/** Classifies a try of the bus of realtime; undefined: what was sent came back. */
export function classifyBus(failure: { message: string } | undefined, subject: string): Finding[] {
  if (!failure) return []
  return [
    fail(
      'realtime_bus_closed',
      `Nothing that is sent on ${subject} comes back: ${failure.message}.`,
      `Let the user of EVENT_LOG_URL publish and subscribe to ${subject}.*, or remove REALTIME_BUS_SUBJECT.`,
    ),
  ]
}

/** Classifies the state of the log in the database. */
export function classifyOutbox(facts: OutboxFacts, given: { isOn: boolean; now: Date }): Finding[] {
  if (!given.isOn)
    return facts.isOpen
      ? [
          fail(
            'event_log_left_on',
            `Events are recorded for the log (${facts.waiting} wait), and EVENT_LOG_URL is not set here.`,
            'Set EVENT_LOG_URL, or run: signalbox log off',
          ),
        ]
      : []
  const { remedy, waiting, oldest_waiting_s: seconds } = decideEventLogFacts(facts, given.now)
  if (remedy === null || !facts.isOpen) return []
  return [warn('event_log_behind', `${waiting} events wait for the log, the oldest for ${seconds} s.`, remedy)]
}
