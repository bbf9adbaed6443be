import { buildIntake, type Intake, type IntakeCounts } from '../../carriage/intake/intake.ts'
import { buildCarriedSeal, CARRIED_PURPOSE } from '../../carriage/log/carried-event.ts'
import type { EventLogSettings } from '../../carriage/settings.ts'
import { listOwnRetentions } from '../../identity/account/limit/own-retention.store.ts'
import { decideOwnEdges } from '../../postgres/own-retention.ts'
import type { WorkerParts } from '../work/worker-parts.ts'

const DAY_MS = 86_400_000

/** The event type of a test of one webhook, whose delivery its database makes. */
const OF_ONE_WEBHOOK = 'webhook.test'

/** Builds the intake of a database in this process. */
export function buildAppIntake(
  parts: Pick<WorkerParts, 'config' | 'database' | 'clock' | 'logger' | 'workerId' | 'keyring'>,
  given: { eventLog: EventLogSettings; home: string; self: string; counts: IntakeCounts; onQueued: () => void },
): Intake {
  const { config, database, clock, logger, workerId, keyring } = parts
  const { eventLog, home, self, counts, onQueued } = given
  return buildIntake({
    ...{ db: database.db, clock, logger, runnerId: workerId, home, self, onQueued, ...counts },
    unseal: buildCarriedSeal(keyring.deriveKeys(CARRIED_PURPOSE)).open,
    isPassedOver: (type) => type === OF_ONE_WEBHOOK,
    retentionMs: config.webhookLedgerRetentionDays * DAY_MS,
    readOwnEdges: async () =>
      decideOwnEdges(await listOwnRetentions(database.db), {
        now: clock.now(),
        serviceDays: config.webhookLedgerRetentionDays,
      }),
    open: async () => {
      const { openNatsLog } = await import('../../carriage/nats/nats-log.ts')
      return openNatsLog(eventLog, { name: `signalbox intake ${workerId} ${self}`, isReader: true })
    },
  })
}
