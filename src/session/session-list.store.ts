import { HOLDINGS_COLUMNS, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import type { SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'
import { OF_SESSION, type SessionColumns, type SessionRecord, toSessionRecord } from './session.store.ts'

const COLUMNS = [
  'document_id',
  'user',
  'account',
  'parent',
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
  const living = db.selectFrom('session').select(COLUMNS).where('revoked_at', 'is', null).where('expires_at', '>', now)
  return owner === 'all' ? living : living.where('user', '=', owner)
}

const selectOwned = statement<SessionColumns & HoldingsRow>(`
  select ${OF_SESSION}, ${HOLDINGS_COLUMNS} from session s join "user" u on u.document_id = s."user"
  where s.document_id = $1 and s.revoked_at is null and s.expires_at > $2`)

/** The session with this id, neither revoked nor expired, and what its user holds. */
export async function findOwnedSession(
  db: Database,
  id: string,
  now: Date,
): Promise<{ session: SessionRecord; holdings: Holdings } | undefined> {
  const [row] = await selectOwned(db, [id, now])
  return row && { session: toSessionRecord(row), holdings: toHoldings(row) }
}

const revokeOthers = statement<{ document_id: SessionId }>(`
  update session set revoked_at = $3, updated_at = $3
  where document_id in (
    select document_id from session where "user" = $1 and document_id <> $2 and revoked_at is null
    order by document_id for no key update)
  returning document_id`)

/** Revokes all sessions of a user but one. Returns those that this call revoked. */
export async function revokeOtherSessionRows(
  db: Database,
  { userId, keep, now }: { userId: UserId; keep: SessionId; now: Date },
): Promise<SessionId[]> {
  return (await revokeOthers(db, [userId, keep, now])).map((row) => row.document_id)
}
