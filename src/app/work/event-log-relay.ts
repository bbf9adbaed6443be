import { buildCarriedSeal, CARRIED_PURPOSE } from '../../carriage/log/carried-event.ts'
import { buildRelay, type Relay } from '../../carriage/relay/relay.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import { buildEnvelope } from '../../webhook/envelope/envelope.ts'
import type { Config } from '../config/config.ts'
import type { WorkerParts } from './worker-parts.ts'

/** Whether this process appends events to the log: one with the role dispatcher. */
export function hasRelay({ eventLog, roles }: Pick<Config, 'eventLog' | 'roles'>): boolean {
  return eventLog !== undefined && roles.includes('dispatcher')
}

/** Builds the relay of this process. The client of NATS is loaded when it connects. */
export function buildAppRelay(parts: WorkerParts, metrics: Pick<Metrics, 'relay'>): Relay | undefined {
  const { config, database, clock, logger, workerId } = parts
  const { eventLog } = config
  if (!eventLog || !metrics.relay) return undefined
  return buildRelay({
    ...{ db: database.db, clock, logger, relayId: workerId, maxAgeMs: eventLog.maxAgeMs },
    ...metrics.relay,
    open: async () => {
      const { openNatsLog } = await import('../../carriage/nats/nats-log.ts')
      return openNatsLog(eventLog, { name: `signalbox ${workerId}` })
    },
    seal: buildCarriedSeal(parts.keyring.deriveKeys(CARRIED_PURPOSE)).seal,
    // A consumer reads what a webhook gets first.
    buildBody: (event) => buildEnvelope({ event, attempt: 1 }),
  })
}
