import { type SqlBool, sql } from 'kysely'
import type { SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { selectRecord } from '../../../postgres/statement/record.ts'
import { closingStatement, rowStatement } from '../../../postgres/statement/statement.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from '../../access/delegation.store.ts'
import type { Holdings } from '../../access/delegation.ts'
import { OF_SESSION, type SessionRecord, type StoredSession, session, toSessionRecord } from '../session.store.ts'

/** The sessions that are neither revoked nor expired, as the base of a list: of one user, or of all. */
export function selectLivingSessions(db: Database, owner: UserId | 'all', now: Date) {
  const living = selectRecord(db.selectFrom('session'), session)
    .where('revoked_at', 'is', null)
    // In this form PostgreSQL does not read all living sessions by the index of their ends, to sort them for a page.
    .where(sql<SqlBool>`(expires_at > ${now}) is true`)
  return owner === 'all' ? living : living.where('user', '=', owner)
}

/** The session is looked up by its id alone: with the join, PostgreSQL may read the living sessions of all users. */
const OWNED = `from (select * from session where document_id = $id offset 0) s
  join "user" u on u.document_id = s."user" ${HOLDINGS_OF_USER}
  where s.revoked_at is null and s.expires_at > $now`
/** The session with this id, neither revoked nor expired, and its user's permissions. */
export const findOwnedSession = rowStatement<
  StoredSession & { holdings: Holdings },
  { id: string; now: Date },
  OwnedSession
>(`select ${OF_SESSION}, ${HOLDINGS} ${OWNED}`, splitHoldings)

/** A session, and its user's permissions. */
export interface OwnedSession {
  session: SessionRecord
  holdings: Holdings
}

function splitHoldings({ holdings, ...stored }: StoredSession & { holdings: Holdings }): OwnedSession {
  return { session: toSessionRecord(stored), holdings }
}

/** `findOwnedSession`, with the unrevoked sessions of its tree, locked: itself, unless it ended, and its children. */
export const lockOwnedSession = rowStatement<
  StoredSession & { holdings: Holdings; tree: SessionId[] },
  { id: string; now: Date },
  OwnedSession & { tree: SessionId[] }
>(`select ${OF_SESSION}, ${HOLDINGS}, lock_session_tree(s.document_id) as tree ${OWNED}`, ({ tree, ...owned }) => ({
  ...splitHoldings(owned),
  tree,
}))

const endLocked = closingStatement<{ ids: readonly SessionId[]; now: Date }>(
  'ended_tree as (update session set revoked_at = $now, updated_at = $now where document_id = any($ids))',
)

/** Revokes locked sessions of a user, with the last statement of the transaction. */
export async function endLockedSessions(
  db: Database,
  { ids, userId, now }: { ids: readonly SessionId[]; userId: UserId; now: Date },
): Promise<void> {
  if (ids.length > 0) await endLocked(db, { ids, now }, { invalidations: `u:${userId}` })
}
