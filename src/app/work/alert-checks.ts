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

const HEALTH = '/api/v3/health'
const COMPONENT = `${HEALTH}/component`

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
    checkOne('secret-unreadable', { subject: 'SECRET_KEY', url: `${COMPONENT}/stored-secrets` }, async (db) => {
      const { figures } = listFigures(await deps.readCellFacts())
      const { unreadable, missing_keys: missing } = addSecretFacts(
        await readSecretFacts(db, deps.keyIds),
        figures.map(({ secrets }) => secrets),
      )
      const summary = `${unreadable} stored secrets need a key that SECRET_KEY does not list: ${missing.join(', ')}.`
      return { summary, isOn: unreadable > 0 }
    }),
    checkOne('clock-skew', { subject: 'clock', url: `${COMPONENT}/clock` }, async (db, now) => {
      const { skewed_processes: skewed, largest_skew_s: seconds } = await readClockFacts(db, now)
      const furthest = `${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead'}`
      const summary = `${skewed} processes have another time than the database; the furthest is ${furthest}.`
      return { summary, isOn: skewed > 0 }
    }),
    checkState('certificate-ending', buildCertificateCheck(deps.logger)),
    ...(deps.hasEventLog ? [...EVENT_LOG_CHECKS, checkCells(deps.readCellFacts)] : []),
    checkOne('realtime-down', { subject: 'realtime', url: `${COMPONENT}/integration/realtime` }, async () => {
      const { status, isWanted } = await deps.readRealtimeHealth()
      const summary =
        'Realtime messages are not published: a setting is missing, no process publishes, or the provider fails.'
      return { summary, isOn: isWanted && status === 'down' }
    }),
  ]
}

const OF_EVENT_LOG = { subject: 'event-log', url: HEALTH }

const EVENT_LOG_CHECKS: readonly IncidentCheck[] = [
  checkOne('event-log-behind', OF_EVENT_LOG, async (db, now) => {
    const { oldest_waiting_s: seconds } = await readEventLogFacts(db, now)
    return { summary: `Events have waited for the event log for ${seconds} seconds.`, isOn: isBehind(seconds) }
  }),
  checkOne('event-log-lost', OF_EVENT_LOG, async (db, now) => {
    const { loss, republishing_from: from } = await readEventLogFacts(db, now)
    const fault = loss === 'replaced' ? 'was replaced' : 'lost its last events'
    const summary = `The event log ${fault}; events from ${from} on are published again.`
    return { summary, isOn: loss !== null && from !== null }
  }),
]

/** How long something must be wrong with the cells, so that processes that start or stop begin no incident. */
const CELLS_WRONG_MS = 60_000

/** One incident for all cells. What is to be done names accounts and servers: the summary has the number alone. */
function checkCells(readCellFacts: ReadCellFacts): IncidentCheck {
  let wrongSinceMs: number | undefined
  return checkOne('cells-broken', { subject: 'cells', url: HEALTH }, async (_db, now) => {
    const status = (await readCellFacts())?.status
    const { remedies = [], databases = [] } = status ?? {}
    const away = databases.filter(({ is_reachable: isReachable }) => !isReachable).map(({ name }) => name)
    wrongSinceMs = remedies.length > 0 ? (wrongSinceMs ?? now.getTime()) : undefined
    const isLasting = wrongSinceMs !== undefined && now.getTime() - wrongSinceMs >= CELLS_WRONG_MS
    const summary = `${remedies.length} things are to be done about the cells: run signalbox cell status.`
    return {
      summary: away.length > 0 ? `${summary} Away: ${away.join(', ')}.` : summary,
      isOn: isLasting ? true : wrongSinceMs === undefined ? false : undefined,
    }
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
    url: `${COMPONENT}/integration/${component}`,
    isOn: isBehind(oldestSeconds),
  }
}

/** A check of an incident that has one subject. */
function checkOne(
  incident: string,
  of: Pick<State, 'subject' | 'url'>,
  read: (db: Database, now: Date) => Promise<Pick<State, 'summary' | 'isOn'>>,
): IncidentCheck {
  return checkState(incident, async (db, now) => [{ incident, ...of, ...(await read(db, now)) }])
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
