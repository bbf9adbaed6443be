import { HOLDINGS_COLUMNS, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import type { UserId } from '../id.ts'
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
