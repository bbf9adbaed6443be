import { measureLost } from '../worker-lease.ts'
import type { PostOutcome } from './signed-post.ts'

/** Ends a claim of a lost worker as an interrupted attempt. Pure. */
export function endLost<Lost extends { startedAt: Date }>(
  lost: Lost,
  now: Date,
): Lost & PostOutcome & { traceId: null; endedAt: Date } {
  const nothing = { responseExcerpt: null, responseHeaders: null, timings: null, traceId: null }
  const result = { errorClass: 'interrupted' } as const
  return { ...lost, ...nothing, result, endedAt: now, durationMs: measureLost(lost.startedAt, now) }
}
