import { type Selectable, sql } from 'kysely'
import type { AccountId, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'
import type { Session } from '../postgres/tables.generated.ts'

/** A row of the `session` table. */
export interface SessionRecord {
  id: SessionId
  userId: UserId
  /** The current account. */
  accountId: AccountId | null
  /** The session that this one was opened from by a handshake (docs/contract/sso.md#exchange-checks). */
  parentId: SessionId | null
  address: string | null
  userAgent: string | null
  expiresAt: Date
  revokedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

function toSessionRecord(row: Selectable<Session>): SessionRecord {
  return {
    id: row.document_id as SessionId,
    userId: row.user as UserId,
    accountId: row.account as AccountId | null,
    parentId: row.parent as SessionId | null,
    address: row.address,
    userAgent: row.user_agent,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** Inserts a session. */
export async function insertSession(
  db: Database,
  row: Omit<SessionRecord, 'revokedAt' | 'createdAt' | 'updatedAt'> & { now: Date },
): Promise<SessionRecord> {
  const inserted = await db
    .insertInto('session')
    .values({
      document_id: row.id,
      user: row.userId,
      account: row.accountId,
      parent: row.parentId,
      address: row.address,
      user_agent: row.userAgent,
      expires_at: row.expiresAt,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toSessionRecord(inserted)
}

/**
 * Whether the user is active, and locked until the transaction ends: who disables a user or changes its password waits for a
 * session that is just being opened, and then ends it with the others.
 */
export async function lockActiveUser(db: Database, userId: UserId): Promise<boolean> {
  const row = await db
    .selectFrom('user')
    .select('document_id')
    .where('document_id', '=', userId)
    .where('is_actived', '=', true)
    .where('deleted_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** The session with this id, whatever its state. */
export async function findSession(db: Database, id: SessionId): Promise<SessionRecord | undefined> {
  const row = await db.selectFrom('session').selectAll().where('document_id', '=', id).executeTakeFirst()
  return row && toSessionRecord(row)
}

/** The session with this id while it serves: unrevoked, unexpired, its user active. */
export async function findLivingSession(db: Database, id: SessionId, now: Date): Promise<SessionRecord | undefined> {
  const row = await db
    .selectFrom('session')
    .innerJoin('user', 'user.document_id', 'session.user')
    .selectAll('session')
    .where('session.document_id', '=', id)
    .where('session.revoked_at', 'is', null)
    .where('session.expires_at', '>', now)
    .where('user.is_actived', '=', true)
    .where('user.deleted_at', 'is', null)
    .executeTakeFirst()
  return row && toSessionRecord(row)
}

/**
 * Revokes a session and every session opened from it. Returns those that this call ended. All that change several
 * sessions lock them in the order of their ids, so that none wait for each other in a circle.
 */
export async function revokeSessionTree(db: Database, id: SessionId, now: Date): Promise<SessionId[]> {
  const { rows } = await sql<{ document_id: SessionId }>`
    with recursive tree as (
      select document_id from session where document_id = ${id}
      union
      select child.document_id from session child join tree on child.parent = tree.document_id
    )
    update session set revoked_at = ${now}, updated_at = ${now}
    where document_id in (
      select document_id from session
      where document_id in (select document_id from tree) and revoked_at is null
      order by document_id for no key update)
    returning document_id`.execute(db)
  return rows.map((row) => row.document_id)
}

/** Revokes all sessions of a user. Returns those that this call ended. */
export async function revokeUserSessionRows(db: Database, userId: UserId, now: Date): Promise<SessionId[]> {
  const { rows } = await sql<{ document_id: SessionId }>`
    update session set revoked_at = ${now}, updated_at = ${now}
    where document_id in (
      select document_id from session where "user" = ${userId} and revoked_at is null
      order by document_id for no key update)
    returning document_id`.execute(db)
  return rows.map((row) => row.document_id)
}

/** Takes an account out of the sessions that stand in it: of one user, or of all. */
export async function clearSessionAccount(
  db: Database,
  input: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  const { account, userId, now } = input
  await sql`
    update session set account = null, updated_at = ${now}
    where document_id in (
      select document_id from session
      where account = ${account} ${userId === 'all' ? sql`` : sql`and "user" = ${userId}`}
      order by document_id for no key update)`.execute(db)
}

/** Keeps the hash of a refresh token. */
export async function insertRefreshToken(
  db: Database,
  row: { tokenHash: Buffer; sessionId: SessionId; expiresAt: Date; now: Date },
): Promise<void> {
  await db
    .insertInto('session_refresh')
    .values({ token_hash: row.tokenHash, session: row.sessionId, expires_at: row.expiresAt, created_at: row.now })
    .execute()
}

/** A refresh token as it was found. */
export interface RefreshTokenRecord {
  sessionId: SessionId
  expiresAt: Date
}

/**
 * Spends a refresh token, in one statement: of two at once exactly one gets the row, the other waits and finds it spent.
 * Undefined when there is no such token, or when it is spent.
 */
export async function spendRefreshToken(
  db: Database,
  tokenHash: Buffer,
  now: Date,
): Promise<RefreshTokenRecord | undefined> {
  const row = await db
    .updateTable('session_refresh')
    .set({ spent_at: now })
    .where('token_hash', '=', tokenHash)
    .where('spent_at', 'is', null)
    .returning(['session', 'expires_at'])
    .executeTakeFirst()
  return row && { sessionId: row.session as SessionId, expiresAt: row.expires_at }
}

/** The refresh token with this hash, spent or not. */
export async function findRefreshToken(db: Database, tokenHash: Buffer): Promise<RefreshTokenRecord | undefined> {
  const row = await db
    .selectFrom('session_refresh')
    .select(['session', 'expires_at'])
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst()
  return row && { sessionId: row.session as SessionId, expiresAt: row.expires_at }
}

/** An account as a sign-in names it. */
export interface AccountName {
  id: AccountId
  name: string
}

/** The living accounts that a user belongs to, the longest membership first: the first one is where a sign-in begins. */
export async function listAccountsOfUser(db: Database, userId: UserId): Promise<AccountName[]> {
  const rows = await db
    .selectFrom('account_member')
    .innerJoin('account', 'account.document_id', 'account_member.account')
    .select(['account.document_id', 'account.name'])
    .where('account_member.user', '=', userId)
    .where('account.deleted_at', 'is', null)
    .orderBy('account_member.created_at')
    .orderBy('account_member.document_id')
    .execute()
  return rows.map((row) => ({ id: row.document_id as AccountId, name: row.name }))
}

/** Who a session is of, as `GET /api/v3/auth/session` shows it. */
export interface SessionUser {
  id: UserId
  email: string
  name: string | null
  avatarUrl: string | null
}

interface DescriptionColumns {
  user_id: string
  email: string
  name: string | null
  avatar_url: string | null
  accounts: { id: string; name: string }[]
}

const selectDescription = statement<DescriptionColumns>(`
  select u.document_id as user_id, u.email, u.name, u.avatar_url, s.*,
    array(select json_build_object('id', a.document_id, 'name', a.name)
      from account_member m join account a on a.document_id = m.account
      where m."user" = u.document_id and a.deleted_at is null order by m.created_at, m.document_id) as accounts
  from "user" u left join session s on s.document_id = $2 and s."user" = u.document_id
  where u.document_id = $1 and u.deleted_at is null`)

/** A user with one of its sessions and its living accounts, the longest membership first. */
export async function findSessionDescription(
  db: Database,
  userId: UserId,
  sessionId: SessionId | null,
): Promise<{ user: SessionUser; session: SessionRecord | undefined; accounts: AccountName[] } | undefined> {
  const [row] = await selectDescription(db, [userId, sessionId])
  if (!row) return undefined
  const session = row as unknown as Selectable<Session>
  return {
    user: { id: row.user_id as UserId, email: row.email, name: row.name, avatarUrl: row.avatar_url },
    session: session.document_id ? toSessionRecord(session) : undefined,
    accounts: row.accounts as AccountName[],
  }
}

/** Deletes up to `limit` sessions that ended before `before` and have no successor left. Returns how many went. */
export async function deleteEndedSessions(db: Database, before: Date, limit: number): Promise<number> {
  const result = await sql`
    delete from session where document_id in (
      select s.document_id from session s
      where s.expires_at < ${before} and not exists (select from session child where child.parent = s.document_id)
      order by s.expires_at limit ${limit} for update skip locked)`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}
