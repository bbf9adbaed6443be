import { type SqlBool, sql } from 'kysely'
import type { SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'
import { HOLDINGS_COLUMNS, HOLDINGS_OF_USER, type HoldingsRow, toHoldings } from '../../access/delegation.store.ts'
import type { Holdings } from '../../access/delegation.ts'
import { OF_SESSION, type SessionColumns, type SessionRecord, toSessionRecord } from '../session.store.ts'

const COLUMNS = [
  'document_id',
  'user',
  'account',
  'parent',
  'client_id',
  'scope',
  'grant_id',
  'address',
  'user_agent',
  'amr',
  'acr',
  'auth_time',
  'last_used_at',
  'expires_at',
  'revoked_at',
  'created_at',
  'updated_at',
] as const

/** The sessions that are neither revoked nor expired, as the base of a list: of one user, or of all. */
export function selectLivingSessions(db: Database, owner: UserId | 'all', now: Date) {
  const living = db
    .selectFrom('session')
    .select(COLUMNS)
    .where('revoked_at', 'is', null)
    // In this form PostgreSQL does not read all living sessions by the index of their ends, to sort them for a page.
    .where(sql<SqlBool>`(expires_at > ${now}) is true`)
  return owner === 'all' ? living : living.where('user', '=', owner)
}

/** The session is looked up by its id alone: with the join, PostgreSQL may read the living sessions of all users. */
const OWNED = `from (select * from session where document_id = $id offset 0) s
  join "user" u on u.document_id = s."user" ${HOLDINGS_OF_USER}
  where s.revoked_at is null and s.expires_at > $now`
const selectOwned = statement<SessionColumns & HoldingsRow, { id: string; now: Date }>(
  `select ${OF_SESSION}, ${HOLDINGS_COLUMNS} ${OWNED}`,
)

/** A session, and what its user holds. */
export interface OwnedSession {
  session: SessionRecord
  holdings: Holdings
}

/** The session with this id, neither revoked nor expired, and what its user holds. */
export async function findOwnedSession(db: Database, id: string, now: Date): Promise<OwnedSession | undefined> {
  const [row] = await selectOwned(db, { id, now })
  return row && { session: toSessionRecord(row), holdings: toHoldings(row) }
}

const lockOwned = statement<SessionColumns & HoldingsRow & { tree: SessionId[] }, { id: string; now: Date }>(
  `select ${OF_SESSION}, ${HOLDINGS_COLUMNS}, lock_session_tree(s.document_id) as tree ${OWNED}`,
)

/**
 * `findOwnedSession`, with the unrevoked sessions of its tree, locked until the transaction ends: itself and those opened
 * from it. It is not among them when it ended in the meantime.
 */
export async function lockOwnedSession(
  db: Database,
  id: string,
  now: Date,
): Promise<(OwnedSession & { tree: SessionId[] }) | undefined> {
  const [row] = await lockOwned(db, { id, now })
  return row && { session: toSessionRecord(row), holdings: toHoldings(row), tree: row.tree }
}

const endLocked = closingStatement<{ ids: readonly SessionId[]; now: Date }>(
  'ended_tree as (update session set revoked_at = $now, updated_at = $now where document_id = any($ids))',
)

/** Revokes locked sessions of a user, with the last statement of the transaction. */
export async function endLockedSessions(
  db: Database,
  { ids, userId, now }: { ids: readonly SessionId[]; userId: UserId; now: Date },
): Promise<void> {
  if (ids.length > 0) await endLocked(db, { ids, now }, { notes: `u:${userId}` })
}
