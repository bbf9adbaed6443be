/**
 * The states of a job and their moves:
 *
 *   running --- nothing is left to do ---> done
 *   running --- pause ---> paused --- resume ---> running
 *   running, paused, failed --- cancel ---> cancelled
 *   running --- several rounds failed in a row ---> failed --- resume ---> running
 *
 * Done, cancelled and failed jobs have ended: they are deleted with the retention. A failed one that is resumed has not.
 */
export type JobStatus = 'running' | 'paused' | 'done' | 'cancelled' | 'failed'

/** Actions of an operator on a job. */
export type JobMove = 'pause' | 'resume' | 'cancel'

/** The source states and the target state of each move. */
export const JOB_MOVES: Readonly<Record<JobMove, { from: readonly JobStatus[]; to: JobStatus }>> = {
  pause: { from: ['running'], to: 'paused' },
  resume: { from: ['paused', 'failed'], to: 'running' },
  cancel: { from: ['running', 'paused', 'failed'], to: 'cancelled' },
}

/** The target state of a move; undefined when the state does not allow it. Pure. */
export function findMove(status: JobStatus, move: JobMove): JobStatus | undefined {
  return JOB_MOVES[move].from.includes(status) ? JOB_MOVES[move].to : undefined
}

/** Number of consecutive failed rounds after which a job ends as `failed`. */
const MAX_FAILURES = 5

/** State of a job after one more failed round: after a few in a row it has failed, so that none runs forever. Pure. */
export function countJobFailure(before: number): { failures: number; status?: 'failed'; lastError?: string } {
  const failures = before + 1
  if (failures < MAX_FAILURES) return { failures }
  const lastError = `${failures} consecutive rounds failed; the log gives the cause. Resume the job when the cause is repaired.`
  return { failures, status: 'failed', lastError }
}
