import type { IdMaker, UserId } from '../../base/id.ts'
import { moveJob } from '../../delivery/job/job-move.ts'
import type { JobMove } from '../../delivery/job/job-state.ts'
import { notFound, Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { ProvisioningEvent } from '../claim/payload.ts'
import { checkQueueOn, type DeliveryDeps } from '../ledger/replay.ts'
import { loadTarget } from '../target/target.ts'
import { findJobWithOutcomes, insertJob, type JobRecord, provisioningJobs } from './job.store.ts'
import type { JobKind, UserAtTarget } from './job-record.ts'

/** Dependencies of jobs. */
export interface JobDeps extends DeliveryDeps {
  ids: IdMaker
}

/** Event that a job sends of a user; null for none: a waiting delivery already carries the present state. Pure. */
export function decideSync(kind: Exclude<JobKind, 'redrive'>, user: UserAtTarget): ProvisioningEvent | null {
  const { isDeleted, waiting, digest, deliveredDigest } = user
  if (waiting > 0) return null
  const isKnown = deliveredDigest !== null && deliveredDigest !== 'deleted'
  if (isDeleted) return kind === 'reconcile' && isKnown ? 'user.deprovisioned' : null
  if (kind === 'reconcile' && digest === deliveredDigest) return null
  return isKnown && kind === 'reconcile' ? 'user.updated' : 'user.provisioned'
}

/** The job with this id, or a 404. */
export async function loadJob(db: Database, id: string): Promise<JobRecord> {
  const job = await provisioningJobs.find(db, id)
  if (!job) throw notFound('provisioning job')
  return job
}

/** The job with the results of its deliveries. */
export async function loadJobWithOutcomes(
  db: Database,
  id: string,
): Promise<{ job: JobRecord; outcomes: Record<string, number> }> {
  const found = await findJobWithOutcomes(db, { id })
  if (!found) throw notFound('provisioning job')
  return found
}

/** Starts a job. Throws 404, 409 `target_inactive`, `conflict` beside an open job or with the event queue off. */
export async function startJob(
  deps: JobDeps,
  db: Database,
  input: { target: string; kind: JobKind; by: UserId | null; now: Date },
): Promise<JobRecord> {
  checkQueueOn(deps)
  const inserted = await insertJob(db, { ...input, id: deps.ids.next<'provisioning job'>() })
  if (inserted) return inserted
  const { isActived } = await loadTarget(db, input.target)
  if (!isActived) throw new Problem('target_inactive', 'The target is inactive. Activate it first.')
  throw new Problem('conflict', 'The target has a job that has not ended. Wait for it, or cancel it.')
}

/** Pauses, resumes or cancels a job (`moveJob`). */
export function changeJob(db: Database, id: string, input: { move: JobMove; now: Date }): Promise<JobRecord> {
  return moveJob({ table: provisioningJobs, load: loadJob, noun: 'job' }, db, id, input)
}
