import { sweepAround, sweepOwn } from '../postgres/ledger-sweep.ts'
import { type Sweep, sweepBatches, sweepLedger, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { widenBreakdowns } from './activity/breakdown.store.ts'
import { deleteOldOutcomes } from './activity/outcome.store.ts'
import { foldOldMinutes } from './delivery/delivery-count.store.ts'
import {
  cancelOrphanedDispatches,
  cancelUnpulled,
  deleteOldDispatches,
  deleteOrphanedDispatches,
  deleteOwnDispatches,
  deletePassedDispatches,
} from './ledger/removal.store.ts'
import { deleteOldTold } from './mail/cell-notice.store.ts'
import { deleteOldTurns } from './mail/notice.store.ts'
import { foldWebhookCounts } from './registry/webhook-count.store.ts'
import { deleteOldReplayJobs } from './replay/replay-job.store.ts'
import { deleteOldThrottles } from './throttle/throttle.store.ts'

/** Retention of the counts of deliveries by the minute: the 24 h of the dashboard's summary, and an hour more. */
const MINUTES_KEPT_MS = 25 * 3_600_000

/** Retention of the sums of attempts, in hours: what the dashboard's series of each width reads, and some more. */
const OUTCOMES_KEPT_HOURS = { minutes: 2, hours: 49, quarters: 8 * 24, days: 31 * 24 }

/** Ages at which the sums of breakdowns are widened, and those of days end, in minutes: each serves a range, and some more. */
const BREAKDOWN_KEPT_MINUTES = { fiveMinutes: 65, hours: 25 * 60, days: 31 * 24 * 60 }

/** Retention of the last mails of an account: longer than the wait for its next ones. */
const MAIL_TURN_KEPT_MS = 86_400_000

/** Retention of a purged webhook in the queue. */
const ORPHAN_KEPT_MS = 3_600_000

/** Time for which a claim counts for the limit of its webhook. */
const THROTTLE_KEPT_MS = 60_000

const LEDGER_COUNTS = ['dispatches', 'attempts'] as const

const dispatchSweep = sweepAround(
  LEDGER_COUNTS,
  async ({ db, ledgerBefore, limit }) => {
    const { dispatches, attempts } = await deleteOldDispatches(db, ledgerBefore, limit)
    return [dispatches, attempts]
  },
  ({ db, ledgerBefore: before, limit }, { after, longer }) =>
    deletePassedDispatches(db, { after: after.at, afterId: after.id, before, longer, limit }),
)

const ownDispatchSweep = sweepOwn(LEDGER_COUNTS, async ({ db, limit }, own) => {
  const { dispatches, attempts } = await deleteOwnDispatches(db, own, limit)
  return [dispatches, attempts]
})

/** Retention of the ledger, dispatches of deleted webhooks, and the counts. */
export const webhookSweeps: readonly Sweep[] = [
  dispatchSweep,
  ownDispatchSweep,
  sweepLedger('replayJobs', deleteOldReplayJobs),
  sweepBatches('cancelled', ({ db, workerId, now, limit }) => cancelOrphanedDispatches(db, { workerId, now, limit })),
  sweepBatches('unpulled', ({ db, workerId, now, limit }) => cancelUnpulled(db, { workerId, now, limit })),
  sweepOld('orphans', ORPHAN_KEPT_MS, deleteOrphanedDispatches),
  sweepOld('throttles', THROTTLE_KEPT_MS, deleteOldThrottles),
  sweepOnce('minutes', ({ db, now }) => foldOldMinutes(db, { before: new Date(now.getTime() - MINUTES_KEPT_MS) })),
  sweepBatches('outcomes', ({ db, now, limit }) => {
    const before = (hours: number) => new Date(now.getTime() - hours * 3_600_000)
    const { minutes, hours, quarters, days } = OUTCOMES_KEPT_HOURS
    const ends = { minutes: before(minutes), hours: before(hours), quarters: before(quarters), days: before(days) }
    return deleteOldOutcomes(db, { ...ends, limit })
  }),
  sweepBatches('breakdowns', ({ db, now, limit }) => {
    const before = (minutes: number) => new Date(now.getTime() - minutes * 60_000)
    const { fiveMinutes, hours, days } = BREAKDOWN_KEPT_MINUTES
    const ends = { fiveMinutes: before(fiveMinutes), hours: before(hours), days: before(days) }
    return widenBreakdowns(db, ends, limit)
  }),
  sweepOld('mailTurns', MAIL_TURN_KEPT_MS, deleteOldTurns),
  sweepLedger('mailsTold', deleteOldTold),
  sweepOnce('webhookCounts', ({ db, limit }) => foldWebhookCounts(db, { limit })),
]
