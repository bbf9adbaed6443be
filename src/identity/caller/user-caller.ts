import type { UserId } from '../../base/id.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findUserCallers, NO_SESSION } from './caller.store.ts'

/** Permissions of active users, as callers without a session, for decisions that outlive a request. */
export async function readUserCallers(db: Database, users: readonly UserId[]): Promise<Map<UserId, Caller>> {
  const found = users.length > 0 ? await findUserCallers(db, users) : []
  const whole = { ...NO_SESSION, apiKeyId: null, ceiling: null, keyAccount: null }
  return new Map(found.map((row) => [row.userId, { ...row, ...whole }]))
}
