import type { Caller } from '../http/caller.ts'
import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { findUserCaller } from './caller.store.ts'

/**
 * What a user may do now, as a caller without a session: for decisions that outlive a request. Undefined for a user who is
 * disabled, deleted or unknown.
 */
export async function readUserCaller(db: Database, userId: UserId): Promise<Caller | undefined> {
  const found = await findUserCaller(db, userId)
  return (
    found && {
      ...found,
      sessionId: null,
      apiKeyId: null,
      clientId: null,
      accountId: null,
      ceiling: null,
      keyAccount: null,
      proof: null,
    }
  )
}
