import { type Sweep, sweepOld } from '../postgres/sweep.ts'
import { deleteOldRateWindows } from './rate-limit/rate-limit.store.ts'
import { deleteExpiredIdempotencyKeys } from './route/idempotency.store.ts'
import { IDEMPOTENCY_KEPT_MS } from './route/idempotency.ts'

/** Windows of the rate limits are of no use after this. */
const RATE_WINDOW_KEPT_MS = 600_000

/** Idempotency keys and windows of the rate limits. */
export const httpSweeps: readonly Sweep[] = [
  sweepOld('idempotencyKeys', IDEMPOTENCY_KEPT_MS, deleteExpiredIdempotencyKeys),
  sweepOld('rateWindows', RATE_WINDOW_KEPT_MS, deleteOldRateWindows),
]
