import { NIL_ID } from '../../base/id.ts'

/** Upper bounds of the buckets of the duration histogram, in milliseconds; the last bucket is open. */
export const DURATION_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const

/** The scope of counts over all accounts. */
export const EVERYTHING = NIL_ID

/** The answer of an attempt that delivered, beside the failure classes of the others. */
export const DELIVERED = 'http_2xx'
