import type { UserId } from '../../base/id.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findUserCallers } from './caller.store.ts'

/** Permissions of active users, as callers without a session, for decisions that outlive a request. */
export async function readUserCallers(db: Database, users: readonly UserId[]): Promise<Map<UserId, Caller>> {
  const found = users.length > 0 ? await findUserCallers(db, users) : []
  return new Map(
    found.map((row) => [
      row.userId,
      {
        ...row,
        sessionId: null,
        apiKeyId: null,
        clientId: null,
        accountId: null,
        ceiling: null,
        keyAccount: null,
        proof: null,
      },
    ]),
  )
}
