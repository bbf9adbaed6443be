import { isUuid } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type EventLog, LOG_SKEW_MS, type LogState } from '../log/log.ts'
import { decideLoss, type FoundLoss, type KnownOfLog } from './loss.ts'
import { findOwnEvents } from './own-event.store.ts'

const LOOK_SIZE = 250

/** Compares the log with what its database knows of it: the state and its messages, read at once. Throws a `LogError`. */
export async function examineLog(
  log: EventLog,
  known: KnownOfLog,
): Promise<{ state: LogState; found: FoundLoss | undefined }> {
  const { ownSequence, adoptedIncarnation, adoptedSequence } = known
  const readKnown = (sequence: number | null) => (sequence === null ? undefined : log.readAt(sequence))
  const [state, own, adopted] = await Promise.all([
    log.readState(),
    readKnown(ownSequence),
    adoptedIncarnation === null ? undefined : readKnown(adoptedSequence),
  ])
  return { state, found: decideLoss(known, state, { own, adopted }) }
}

/**
 * When the last event of this database was recorded that the log has, after the log lost its end: each of those that it lost
 * came later. Others may have appended since, so two parts are searched: the end, and what was stored before the last own
 * message (`ownAt`: when it was recorded). Messages up to `adoptedSequence` may be of events that another database
 * appended, and say nothing about those of this one. Undefined when neither part has one. Throws a `LogError`.
 */
export async function findLastOwn(
  db: Database,
  log: EventLog,
  given: { state: LogState; ownAt: Date | null; adoptedSequence: number | null },
): Promise<Date | undefined> {
  const { ownAt, adoptedSequence } = given
  const state = { ...given.state, firstSequence: Math.max(given.state.firstSequence, (adoptedSequence ?? 0) + 1) }
  const atEnd = await findOwnUpTo(db, log, state, state.sequence)
  if (atEnd || !ownAt) return atEnd
  const [later] = await log.read({ from: new Date(ownAt.getTime() - LOG_SKEW_MS), limit: 1 })
  return later && findOwnUpTo(db, log, state, later.sequence - 1)
}

async function findOwnUpTo(
  db: Database,
  log: EventLog,
  { incarnation, firstSequence }: LogState,
  last: number,
): Promise<Date | undefined> {
  const before = Math.max(firstSequence - 1, last - LOOK_SIZE)
  if (before >= last) return undefined
  const entries = await log.read({ from: { incarnation, sequence: before }, limit: last - before })
  const looked = entries.filter(({ sequence, id }) => sequence <= last && isUuid(id))
  const own = await findOwnEvents(
    db,
    looked.map(({ id }) => id),
  )
  // A copy that has not given up yet what the leader lost answers reads as well.
  for (const { id, sequence } of looked.toReversed()) {
    const recordedAt = own.get(id)
    if (recordedAt && (await log.readAt(sequence))?.id === id) return recordedAt
  }
  return undefined
}
