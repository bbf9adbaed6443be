import { type Sweep, sweepLedger, sweepOld } from '../postgres/sweep.ts'
import { deleteOldJobs } from './job/job.store.ts'
import { cancelOrphans, deleteDeadStreams, deleteOldDeliveries } from './target/removal.store.ts'

/** Retention of deliveries, streams and jobs, and deliveries of deleted targets. */
export const provisioningSweeps: readonly Sweep[] = [
  sweepLedger('provisioningDeliveries', deleteOldDeliveries),
  sweepOld('provisioningOrphans', 0, cancelOrphans),
  sweepLedger('provisioningStreams', deleteDeadStreams),
  sweepLedger('provisioningJobs', deleteOldJobs),
]
