import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, statement, valueStatement } from '../../postgres/statement/statement.ts'
import { type Claim, listBlocked, type ReclaimRequest, type WorkerRoom } from '../policy.ts'

/** The statements that every queue of deliveries has besides claim and settle. */

/** A statement that releases claims: `$ids` and `$fences` name them, `$dueAt` is the new due time of their rows. */
export function releaseStatement(
  text: string,
): (db: Database, claims: readonly Claim[], now: Date, dueAt?: Date) => Promise<void> {
  const release = changeStatement<{ ids: readonly string[]; fences: readonly number[]; now: Date; dueAt: Date }>(text)
  return async (db, claims, now, dueAt = now) => {
    if (claims.length === 0) return
    await release(db, { ids: claims.map(({ id }) => id), fences: claims.map(({ fence }) => fence), now, dueAt })
  }
}

/**
 * A statement that finds claims of a lost worker, of any time: its clock may have been ahead. They are not locked: the
 * first record ends a claim.
 */
export function lostStatement<Lost extends Claim>(
  text: string,
): (db: Database, request: ReclaimRequest) => Promise<Lost[]> {
  return statement<Lost, Pick<ReclaimRequest, 'workerId' | 'limit'>>(text)
}

/** A statement of the `due_at` of the next row whose group is not in `$blocked`; null when none waits. */
export function nextDueStatement(text: string): (db: Database, room?: WorkerRoom) => Promise<Date | null> {
  const find = valueStatement<Date | null | undefined, { workerId: string | null; blocked: readonly string[] }>(text)
  return async (db, room) =>
    (await find(db, { workerId: room?.workerId ?? null, blocked: room ? listBlocked(room) : [] })) ?? null
}
