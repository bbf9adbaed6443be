import type { ConnectionId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { countAttempt } from '../connection/activity/connection-activity.ts'
import type { Refusal } from './refusal-problem.ts'

/** Counts the ended sign-ins by connections of this process. */
export interface ConnectionCounter {
  /** `reason` is null for a sign-in that succeeded. */
  countConnectionSignIn: (reason: Refusal | null) => void
}

/** Counts an ended sign-in by a connection: for its account, with the last statement of the transaction, and for operators. */
export async function countEnded(
  { countConnectionSignIn }: ConnectionCounter,
  tx: Database,
  ended: { connection: ConnectionId; reason: Refusal | null; now: Date },
): Promise<void> {
  await countAttempt(tx, ended)
  countConnectionSignIn(ended.reason)
}
