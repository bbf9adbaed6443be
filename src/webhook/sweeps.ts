import { type Sweep, sweepBatches, sweepLedger, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { foldOldMinutes } from './delivery/delivery-count.store.ts'
import { cancelOrphanedDispatches, deleteOldDispatches, deleteOrphanedDispatches } from './ledger/removal.store.ts'
import { foldWebhookCounts } from './registry/webhook-count.store.ts'
import { deleteOldReplayJobs } from './replay/replay-job.store.ts'

/** Counts of deliveries by the minute are kept for as long as the dashboard looks back, and an hour more. */
const MINUTES_KEPT_MS = 25 * 3_600_000

/** The place of a purged webhook in the queue is kept this long. */
const ORPHAN_KEPT_MS = 3_600_000

const dispatchSweep: Sweep = {
  counts: ['dispatches', 'attempts'],
  isBatched: true,
  run: async ({ db, ledgerBefore, limit }) => {
    const { dispatches, attempts } = await deleteOldDispatches(db, ledgerBefore, limit)
    return [dispatches, attempts]
  },
}

/** Retention of the ledger, dispatches of webhooks that are gone, and the counts. */
export const webhookSweeps: readonly Sweep[] = [
  dispatchSweep,
  sweepLedger('replayJobs', deleteOldReplayJobs),
  sweepBatches('cancelled', ({ db, workerId, now, limit }) => cancelOrphanedDispatches(db, { workerId, now, limit })),
  sweepOld('orphans', ORPHAN_KEPT_MS, deleteOrphanedDispatches),
  sweepOnce('minutes', ({ db, now }) => foldOldMinutes(db, new Date(now.getTime() - MINUTES_KEPT_MS))),
  sweepOnce('webhookCounts', ({ db, limit }) => foldWebhookCounts(db, limit)),
]
