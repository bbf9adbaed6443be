import { type Sweep, sweepBatches, sweepLedger, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { deleteOldOutcomes } from './activity/outcome.store.ts'
import { foldOldMinutes } from './delivery/delivery-count.store.ts'
import { cancelOrphanedDispatches, deleteOldDispatches, deleteOrphanedDispatches } from './ledger/removal.store.ts'
import { foldWebhookCounts } from './registry/webhook-count.store.ts'
import { deleteOldReplayJobs } from './replay/replay-job.store.ts'

/** Retention of the counts of deliveries by the minute: the 24 h of the dashboard's summary, and an hour more. */
const MINUTES_KEPT_MS = 25 * 3_600_000

/** Retention of the sums of attempts, in hours: the range of the dashboard's series that each width serves, and some more. */
const OUTCOMES_KEPT_HOURS = { webhooks: 25, minutes: 2, hours: 25, quarters: 8 * 24, days: 31 * 24 }

/** Retention of the queue row of a purged webhook. */
const ORPHAN_KEPT_MS = 3_600_000

const dispatchSweep: Sweep = {
  counts: ['dispatches', 'attempts'],
  isBatched: true,
  run: async ({ db, ledgerBefore, limit }) => {
    const { dispatches, attempts } = await deleteOldDispatches(db, ledgerBefore, limit)
    return [dispatches, attempts]
  },
}

/** Retention of the ledger, dispatches of deleted webhooks, and the counts. */
export const webhookSweeps: readonly Sweep[] = [
  dispatchSweep,
  sweepLedger('replayJobs', deleteOldReplayJobs),
  sweepBatches('cancelled', ({ db, workerId, now, limit }) => cancelOrphanedDispatches(db, { workerId, now, limit })),
  sweepOld('orphans', ORPHAN_KEPT_MS, deleteOrphanedDispatches),
  sweepOnce('minutes', ({ db, now }) => foldOldMinutes(db, new Date(now.getTime() - MINUTES_KEPT_MS))),
  sweepBatches('outcomes', ({ db, now, limit }) => {
    const before = (hours: number) => new Date(now.getTime() - hours * 3_600_000)
    const { webhooks, minutes, hours, quarters, days } = OUTCOMES_KEPT_HOURS
    const ends = { webhooks: before(webhooks), minutes: before(minutes), hours: before(hours) }
    return deleteOldOutcomes(db, { ...ends, quarters: before(quarters), days: before(days) }, limit)
  }),
  sweepOnce('webhookCounts', ({ db, limit }) => foldWebhookCounts(db, limit)),
]
