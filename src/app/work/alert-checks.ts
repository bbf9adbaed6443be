import type { Logger } from 'pino'
import { readEventLogFacts } from '../../carriage/relay/log-facts.ts'
import type { IncidentCheck, NewIncident } from '../../delivery/incident/alert.ts'
import { listFigures, type ReadCellFacts } from '../../operations/health/cell-facts.ts'
import { readClockFacts } from '../../operations/health/clock-health.ts'
import { checkWebhookOut } from '../../operations/health/health.ts'
import type { WebhookOutFacts } from '../../operations/health/webhook-out.ts'
import { addSecretFacts, readSecretFacts } from '../../operations/stored-secret/secret-health.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { readProvisioningFacts } from '../../provisioning/provisioning-health.ts'
import type { RealtimeHealth } from '../../realtime/realtime-health.ts'
import { WEBHOOK_INCIDENT_CHECKS } from '../../webhook/delivery/incident.ts'
import { buildCertificateCheck } from './certificate-check.ts'

/** Waits of the oldest due work at which a backlog incident begins and ends, in seconds. */
const BACKLOG_SECONDS = { begins: 300, ends: 60 }

/** Minimum duration of a state incident, so that processes that briefly disagree do not alternate. */
const SHORTEST_MS = 300_000

/** State of one subject. `isOn` undefined: no change. */
type State = NewIncident & { isOn: boolean | undefined }

/** Every incident with a check (docs/contract/delivery.md#alerts). */
export function listIncidentChecks(deps: {
  keyIds: readonly string[]
  logger: Logger
  readRealtimeHealth: () => Promise<RealtimeHealth>
  hasEventLog: boolean
  readCellFacts: ReadCellFacts
}): readonly IncidentCheck[] {
  return [
    ...WEBHOOK_INCIDENT_CHECKS,
    checkState('backlog', async (db, now) => [
      describeBacklog('webhook-out', await readOldest(db, now, deps.readCellFacts)),
      describeBacklog('provisioning', (await readProvisioningFacts(db, now)).oldest_pending_s),
    ]),
    checkState('secret-unreadable', async (db) => {
      const { figures } = listFigures(await deps.readCellFacts())
      const { unreadable, missing_keys: missing } = addSecretFacts(
        await readSecretFacts(db, deps.keyIds),
        figures.map(({ secrets }) => secrets),
      )
      return [
        {
          incident: 'secret-unreadable',
          subject: 'SECRET_KEY',
          summary: `${unreadable} stored secrets need a key that SECRET_KEY does not list: ${missing.join(', ')}.`,
          url: '/api/v3/health/component/stored-secrets',
          isOn: unreadable > 0,
        },
      ]
    }),
    checkState('clock-skew', async (db, now) => {
      const { skewed_processes: skewed, largest_skew_s: seconds } = await readClockFacts(db, now)
      return [
        {
          incident: 'clock-skew',
          subject: 'clock',
          summary: `${skewed} processes have another time than the database; the furthest is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead'}.`,
          url: '/api/v3/health/component/clock',
          isOn: skewed > 0,
        },
      ]
    }),
    checkState('certificate-ending', buildCertificateCheck(deps.logger)),
    ...(deps.hasEventLog ? [...EVENT_LOG_CHECKS, checkCells(deps.readCellFacts)] : []),
    checkState('realtime-down', async () => {
      const { status, isWanted } = await deps.readRealtimeHealth()
      return [
        {
          incident: 'realtime-down',
          subject: 'realtime',
          summary:
            'Realtime messages are not published: a setting is missing, no process publishes, or the provider fails.',
          url: '/api/v3/health/component/integration/realtime',
          isOn: isWanted && status === 'down',
        },
      ]
    }),
  ]
}

const EVENT_LOG_CHECKS: readonly IncidentCheck[] = [
  checkState('event-log-behind', async (db, now) => {
    const { oldest_waiting_s: seconds } = await readEventLogFacts(db, now)
    return [
      {
        incident: 'event-log-behind',
        subject: 'event-log',
        summary: `Events have waited for the event log for ${seconds} seconds.`,
        url: '/api/v3/health',
        isOn: isBehind(seconds),
      },
    ]
  }),
  checkState('event-log-lost', async (db, now) => {
    const { loss, republishing_from: from } = await readEventLogFacts(db, now)
    return [
      {
        incident: 'event-log-lost',
        subject: 'event-log',
        summary: `The event log ${loss === 'replaced' ? 'was replaced' : 'lost its last events'}; events from ${from} on are published again.`,
        url: '/api/v3/health',
        isOn: loss !== null && from !== null,
      },
    ]
  }),
]

/** How long something must be wrong with the cells, so that processes that start or stop begin no incident. */
const CELLS_WRONG_MS = 60_000

/** One incident for all cells. What is to be done names accounts and servers: the summary has the number alone. */
function checkCells(readCellFacts: ReadCellFacts): IncidentCheck {
  let wrongSinceMs: number | undefined
  return checkState('cells-broken', async (_db, now) => {
    const status = (await readCellFacts())?.status
    const { remedies = [], databases = [] } = status ?? {}
    const away = databases.filter(({ is_reachable: isReachable }) => !isReachable).map(({ name }) => name)
    wrongSinceMs = remedies.length > 0 ? (wrongSinceMs ?? now.getTime()) : undefined
    const isLasting = wrongSinceMs !== undefined && now.getTime() - wrongSinceMs >= CELLS_WRONG_MS
    return [
      {
        incident: 'cells-broken',
        subject: 'cells',
        summary: `${remedies.length} things are to be done about the cells: run signalbox cell status.${away.length > 0 ? ` Away: ${away.join(', ')}.` : ''}`,
        url: '/api/v3/health',
        isOn: isLasting ? true : wrongSinceMs === undefined ? false : undefined,
      },
    ]
  })
}

/** Age of the longest due delivery of home and its cells, in seconds. */
async function readOldest(db: Database, now: Date, readCellFacts: ReadCellFacts): Promise<number> {
  const { details } = await checkWebhookOut(db, now, await readCellFacts())
  return (details as WebhookOutFacts).oldest_pending_s
}

/** Undefined: no change. */
function isBehind(oldestSeconds: number): boolean | undefined {
  const { begins, ends } = BACKLOG_SECONDS
  return oldestSeconds >= begins ? true : oldestSeconds < ends ? false : undefined
}

function describeBacklog(component: 'webhook-out' | 'provisioning', oldestSeconds: number): State {
  return {
    incident: 'backlog',
    subject: component,
    summary: `Due work of ${component} has waited for ${oldestSeconds} seconds.`,
    url: `/api/v3/health/component/integration/${component}`,
    isOn: isBehind(oldestSeconds),
  }
}

/** A check of an incident that is a state: no event records its end. */
function checkState(incident: string, read: (db: Database, now: Date) => Promise<State[]>): IncidentCheck {
  return {
    incident,
    check: async ({ db, now, lasting }) => {
      const states = await read(db, now)
      const oldEnough = lasting.filter(({ since }) => now.getTime() - since.getTime() >= SHORTEST_MS)
      const off = new Set(states.filter(({ isOn }) => isOn === false).map(({ subject }) => subject))
      return {
        begun: states.filter(({ isOn }) => isOn === true).map(({ isOn: _isOn, ...incidentOf }) => incidentOf),
        ended: oldEnough.map(({ subject }) => subject).filter((subject) => off.has(subject)),
      }
    },
  }
}
