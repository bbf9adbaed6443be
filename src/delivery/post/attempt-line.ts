import type { PostOutcome } from './signed-post.ts'

interface LoggedAttempt {
  attempt: Pick<PostOutcome, 'result' | 'durationMs'> & {
    traceId: string | null
    attempt: number
    trigger: string
    workerId: string
  }
  decision: { status: string; lastError: string | null; nextAttemptAt: Date | null }
  isRecorded: boolean
}

/**
 * The fields of the one log line of an attempt: its `ids` first, then the decision (docs/contract/api.md#log-lines).
 * Never a body, an address or a signature. Pure.
 */
export function describeAttempt({ attempt, decision, isRecorded }: LoggedAttempt, ids: Record<string, string>) {
  return {
    trace_id: attempt.traceId,
    ...ids,
    attempt: attempt.attempt,
    trigger: attempt.trigger,
    worker: attempt.workerId,
    status_code: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    error: decision.lastError,
    duration_ms: Math.round(attempt.durationMs),
    status: decision.status,
    next_attempt_at: decision.nextAttemptAt?.toISOString() ?? null,
    recorded: isRecorded,
  }
}
