import type { Random } from '../../base/random.ts'
import { LogError } from '../../carriage/log/log.ts'
import type { EventLogSettings } from '../../carriage/settings.ts'
import { classifyBus, classifyNats, classifySync } from '../../operations/doctor/event-log-findings.ts'
import type { Finding } from '../../operations/doctor/finding.ts'
import type { AppEnv } from '../config/config-variables.ts'

/** Asks the servers of the event log; nothing without a log. */
export async function examineEventLog(given: {
  eventLog: EventLogSettings | undefined
  appEnv: AppEnv
  realtimeBusSubject: string | undefined
  random: Random
}): Promise<Finding[]> {
  const { eventLog, appEnv, realtimeBusSubject: subject } = given
  if (!eventLog) return []
  const { inspectNats, readSync } = await import('../../carriage/nats/nats-inspection.ts')
  const { tryBus } = await import('../../carriage/nats/nats-bus-inspection.ts')
  const [facts, sync, bus] = await Promise.all([
    inspectNats(eventLog).catch((error: unknown) => {
      if (!(error instanceof LogError)) throw error
      return { error: error.code, message: `${error.message}.` }
    }),
    readSync(eventLog.monitorUrls),
    subject === undefined
      ? []
      : tryBus({ settings: eventLog.nats, subject, key: given.random.bytes(32) }).then((error) =>
          classifyBus(error, subject),
        ),
  ])
  return [...classifyNats(facts, { isProduction: appEnv === 'production' }), ...classifySync(sync), ...bus]
}
