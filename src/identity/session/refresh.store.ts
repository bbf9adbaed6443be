import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { PresentedToken } from './refresh-decision.ts'
import { OF_SESSION, type SessionColumns, type SessionRecord, toSessionRecord } from './session.store.ts'

/** A refresh token of the table, with its session. */
export interface StoredToken extends PresentedToken {
  successorSalt: Buffer | null
  successorHash: Buffer | null
  session: SessionRecord
}

interface TokenColumns {
  token_expires_at: Date
  spent_at: Date | null
  spent_by: Buffer | null
  successor_salt: Buffer | null
  successor_hash: Buffer | null
  is_living: boolean
}

const lock = statement<SessionColumns & TokenColumns>(`
  select ${OF_SESSION}, t.expires_at as token_expires_at, t.spent_at, t.spent_by, t.successor_salt, t.successor_hash,
    s.revoked_at is null and s.expires_at > $2 and u.is_actived and u.deleted_at is null as is_living
  from session_refresh t join session s on s.document_id = t.session join "user" u on u.document_id = s."user"
  where t.token_hash = $1 for no key update of t`)

/** Locks the refresh token with this hash until the transaction ends, and reads it. Undefined for an unknown one. */
export async function lockRefreshToken(db: Database, tokenHash: Buffer, now: Date): Promise<StoredToken | undefined> {
  const [row] = await lock(db, [tokenHash, now])
  return (
    row && {
      expiresAt: row.token_expires_at,
      spentAt: row.spent_at,
      spentBy: row.spent_by,
      isSessionLiving: row.is_living,
      successorSalt: row.successor_salt,
      successorHash: row.successor_hash,
      session: toSessionRecord(row),
    }
  )
}

const spend = closingStatement(`
  spent_token as (
    update session_refresh set spent_at = $2, spent_by = $3, successor_salt = $4, successor_hash = $5 where token_hash = $1
  ), used_session as (
    update session set last_used_at = $2 where document_id = $6
  ), next_token as (
    insert into session_refresh (token_hash, session, expires_at, created_at) values ($5, $6, $7, $2))`)

/** Spends a locked refresh token and inserts its successor, with the last statement of the transaction. */
export async function spendRefreshToken(
  db: Database,
  input: {
    tokenHash: Buffer
    client: Buffer
    successor: { salt: Buffer; hash: Buffer; expiresAt: Date }
    session: SessionRecord
    now: Date
  },
): Promise<void> {
  const { tokenHash, client, successor, session, now } = input
  await spend(db, [tokenHash, now, client, successor.salt, successor.hash, session.id, successor.expiresAt])
}
