import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findMove, JOB_MOVES, type JobMove, type JobStatus } from './job-state.ts'
import type { JobTable } from './job-table.ts'

/** A kind of job as an operator moves it. */
export interface MovedKind<Id extends string, Job extends { status: JobStatus }> {
  table: Pick<JobTable<Id, Job, object>, 'move'>
  /** The job with this id; throws 404. */
  load: (db: Database, id: string) => Promise<Job>
  /** Its name in a problem: `replay job`. */
  noun: string
}

/**
 * Pauses, resumes or cancels a job. After the commit no further row of it is queued; already queued rows are delivered.
 * Throws 404, and 409 `conflict` when the state does not allow the move.
 */
export async function moveJob<Id extends string, Job extends { status: JobStatus }>(
  kind: MovedKind<Id, Job>,
  db: Database,
  id: string,
  { move, now }: { move: JobMove; now: Date },
): Promise<Job> {
  const { from, to } = JOB_MOVES[move]
  const moved = await kind.table.move(db, id, { from, to, endedAt: to === 'cancelled' ? now : null, now })
  if (moved) return moved
  const { status } = await kind.load(db, id)
  // Another process changed the status to one that allows the move.
  if (findMove(status, move)) return moveJob(kind, db, id, { move, now })
  throw new Problem('conflict', `The ${kind.noun} is ${status}; ${move} needs one that is ${from.join(' or ')}.`)
}
