import type { AccountId, ConnectionId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { findSignInConnection } from '../connection.store.ts'

/** The account and the latest end of a session that a connection opens at an instant. */
export interface SessionRule {
  connection: ConnectionId
  account: AccountId
  endsAt: Date
}

/** The end of a session that is opened now. Pure. */
export const findSessionEnd = (sessionHours: number, now: Date) => new Date(now.getTime() + sessionHours * 3_600_000)

/** The rule for a session by a one-time code. Undefined once the connection was disabled or deleted. */
export async function findSessionRule(
  db: Database,
  { connection, now }: { connection: ConnectionId; now: Date },
): Promise<SessionRule | undefined> {
  const found = await findSignInConnection(db, connection)
  return found && { connection, account: found.account, endsAt: findSessionEnd(found.sessionHours, now) }
}
