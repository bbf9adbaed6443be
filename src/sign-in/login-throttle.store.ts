import type { Database } from '../postgres/database.ts'
import type { ThrottleState } from './login-throttle.ts'

/** A subject's state as it is kept. */
export interface ThrottleRecord extends ThrottleState {
  subjectHash: Buffer
}

/** The states of these subjects, locked until the transaction ends, in one fixed order so that two sign-ins never cross. */
export async function lockThrottles(db: Database, subjectHashes: readonly Buffer[]): Promise<ThrottleRecord[]> {
  const rows = await db
    .selectFrom('login_throttle')
    .selectAll()
    .where('subject_hash', 'in', subjectHashes)
    .orderBy('subject_hash')
    .forUpdate()
    .execute()
  return rows.map((row) => ({
    subjectHash: row.subject_hash,
    failures: row.failures,
    lastFailureAt: row.last_failure_at,
    lockedUntil: row.locked_until,
  }))
}

/** Makes sure that each subject has a row to lock: one without failures. */
export async function insertMissingThrottles(db: Database, subjectHashes: readonly Buffer[], now: Date): Promise<void> {
  const ordered = [...subjectHashes].sort(Buffer.compare)
  await db
    .insertInto('login_throttle')
    .values(ordered.map((subjectHash) => ({ subject_hash: subjectHash, failures: 0, last_failure_at: now })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Writes the state of a subject whose row is there. */
export async function updateThrottle(db: Database, subjectHash: Buffer, state: ThrottleState): Promise<void> {
  await db
    .updateTable('login_throttle')
    .set({ failures: state.failures, last_failure_at: state.lastFailureAt, locked_until: state.lockedUntil })
    .where('subject_hash', '=', subjectHash)
    .execute()
}

/** Forgets a subject. */
export async function deleteThrottle(db: Database, subjectHash: Buffer): Promise<void> {
  await db.deleteFrom('login_throttle').where('subject_hash', '=', subjectHash).execute()
}

/** Forgets subjects whose last failure is older than `before`. Returns how many went. For maintenance. */
export async function deleteForgottenThrottles(db: Database, before: Date): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('login_throttle')
    .where('last_failure_at', '<', before)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
