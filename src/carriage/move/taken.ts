import type { Database } from '../../postgres/statement/database.ts'
import { LogError } from '../log/log.ts'
import { readLogEnd } from '../relay/adopted.store.ts'
import { examineLog } from '../relay/log-check.ts'
import { readTaken } from './drain.store.ts'
import type { RunningMove } from './running-move.ts'

/**
 * Whether one database has taken in what another one has appended to the log. The position alone does not say so: the log
 * may have lost its end, which others have filled again, and the relay may not know it yet. So the log is asked for the
 * messages that the recorder knows of, after the position was read. Throws a `LogError` other than `unreachable`.
 */
export async function hasTaken({ log }: RunningMove, recorder: Database, taker: Database): Promise<boolean> {
  const end = await readLogEnd(recorder)
  if (!end) return true
  const { incarnation, sequence, adoptedIncarnation, adoptedSequence, isRepublishing } = end
  if (incarnation === null && adoptedIncarnation === null) return true
  if (isRepublishing) return false
  const taken = await readTaken(taker)
  const last = Math.max(sequence, adoptedSequence ?? 0)
  if (!taken || taken.incarnation !== incarnation || taken.sequence < last) return false
  try {
    return (await examineLog(await log(), end)).found === undefined
  } catch (error) {
    if (error instanceof LogError && error.code === 'unreachable') return false
    throw error
  }
}
