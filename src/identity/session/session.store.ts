import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, changeStatement, closingStatement, statement } from '../../postgres/statement/statement.ts'

/** The app that a session is for (docs/contract/oauth-exchange.md#scope-ceiling). */
export interface SessionClient {
  id: string
  /** What the person let the app do: names of scopes, separated by spaces. */
  scope: string
  /** The grant that the session ends with; null when the engine names none. */
  grantId: string | null
}

/** A row of the `session` table. */
export interface SessionRecord {
  id: SessionId
  userId: UserId
  /** The current account. */
  accountId: AccountId | null
  /** The session that this one was opened from by a handshake (docs/contract/sso.md#exchange-checks). */
  parentId: SessionId | null
  /** Null for a session of the person. */
  client: SessionClient | null
  address: string | null
  userAgent: string | null
  /** The methods of the sign-in (docs/contract/sessions.md#how-a-person-signed-in). */
  amr: string[]
  acr: string | null
  authTime: Date
  /** To some minutes (docs/contract/sessions.md#last-use). */
  lastUsedAt: Date
  expiresAt: Date
  revokedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** An account in the answer of a sign-in. */
export interface AccountName {
  id: AccountId
  name: string
}

/** The columns that `toSessionRecord` reads. */
export interface SessionColumns {
  document_id: string
  user: string
  account: string | null
  parent: string | null
  client_id: string | null
  scope: string | null
  grant_id: string | null
  address: string | null
  user_agent: string | null
  amr: string[]
  acr: string | null
  auth_time: Date
  last_used_at: Date
  expires_at: Date
  revoked_at: Date | null
  created_at: Date
  updated_at: Date
}

/** The columns above of the session `s`. */
export const OF_SESSION = `s.document_id, s."user", s.account, s.parent, s.client_id, s.scope, s.grant_id, s.address, s.user_agent, s.amr, s.acr, s.auth_time,
  s.last_used_at, s.expires_at, s.revoked_at, s.created_at, s.updated_at`

/** Maps `OF_SESSION`. */
export function toSessionRecord(row: SessionColumns): SessionRecord {
  return {
    id: row.document_id as SessionId,
    userId: row.user as UserId,
    accountId: row.account as AccountId | null,
    parentId: row.parent as SessionId | null,
    client: row.client_id === null ? null : { id: row.client_id, scope: row.scope ?? '', grantId: row.grant_id },
    address: row.address,
    userAgent: row.user_agent,
    amr: row.amr,
    acr: row.acr,
    authTime: row.auth_time,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** A refresh token as it is stored. */
export interface NewRefreshToken {
  tokenHash: Buffer
  expiresAt: Date
}

/** A session that is to be. */
type NewSession = Omit<SessionRecord, 'client' | 'lastUsedAt' | 'revokedAt' | 'createdAt' | 'updatedAt'> & { now: Date }

const insert = closingStatement<
  NewSession & {
    clientId: string | null
    scope: string | null
    grantId: string | null
    tokenHash: Buffer | null
    tokenExpiresAt: Date | null
  }
>(`
  opened as (
    insert into session (document_id, "user", account, parent, address, user_agent, expires_at, created_at, updated_at,
      last_used_at, amr, acr, auth_time, client_id, scope, grant_id)
    values ($id, $userId, $accountId, $parentId, $address, $userAgent, $expiresAt, $now, $now,
      $now, $amr, $acr, $authTime, $clientId, $scope, $grantId) returning document_id
  ), first_token as (
    insert into session_refresh (token_hash, session, expires_at, created_at)
    select $tokenHash::bytea, document_id, $tokenExpiresAt::timestamptz, $now from opened
    where $tokenHash::bytea is not null)`)

/** Inserts a session, with its first refresh token if there is one, with the last statement of the transaction. */
export async function insertSession(
  db: Database,
  row: NewSession & { client: SessionClient | null; refresh: NewRefreshToken | null },
): Promise<SessionRecord> {
  const { refresh, now, ...session } = row
  const { id: clientId = null, scope = null, grantId = null } = session.client ?? {}
  const { tokenHash = null, expiresAt: tokenExpiresAt = null } = refresh ?? {}
  await insert(db, { ...session, now, clientId, scope, grantId, tokenHash, tokenExpiresAt })
  return { ...session, lastUsedAt: now, revokedAt: null, createdAt: now, updatedAt: now }
}

const lockSigningIn = statement<
  { accounts: AccountName[] },
  { userId: UserId; passwordHash: string | null; begunAt: Date | null }
>(`
  with u as (
    select document_id from "user"
    where document_id = $userId and is_actived and deleted_at is null
      and ($passwordHash::text is null or password_hash = $passwordHash)
      and ($begunAt::timestamptz is null or access_ended_at is null or access_ended_at <= $begunAt)
    for no key update
  )
  select accounts_of(u.document_id) as accounts from u`)

/**
 * Locks an active user until the transaction ends, and returns its accounts behind the lock: those that are not deleted,
 * the longest membership first. A transaction that disables the user or changes the password waits for this one, and then
 * revokes its session with the others. Undefined when the user is not active, `passwordHash` is given and no longer the
 * user's, or its access was ended after `begunAt`, when the sign-in began.
 */
export async function lockActiveUser(
  db: Database,
  userId: UserId,
  { passwordHash = null, begunAt = null }: { passwordHash?: string | null; begunAt?: Date | null } = {},
): Promise<AccountName[] | undefined> {
  const [row] = await lockSigningIn(db, { userId, passwordHash, begunAt })
  return row?.accounts
}

const selectOne = statement<SessionColumns, { id: SessionId }>(
  `select ${OF_SESSION} from session s where s.document_id = $id`,
)

/** The session with this id, in any state. */
export async function findSession(db: Database, id: SessionId): Promise<SessionRecord | undefined> {
  const [row] = await selectOne(db, { id })
  return row && toSessionRecord(row)
}

const revokeOne = statement<{ document_id: SessionId }, { id: SessionId; now: Date; isFamily: boolean }>(
  `select revoke_session(case when $isFamily then root_session($id) else $id end, $now) as document_id`,
)
const revokeOfToken = statement<
  { document_id: SessionId },
  { tokenHash: Buffer; userId: UserId; now: Date; isFamily: boolean }
>(`
  select revoke_session(case when $isFamily then root_session(t.session) else t.session end, $now) as document_id
  from session_refresh t
  where t.token_hash = $tokenHash and (select "user" from session where document_id = t.session) = $userId`)

/**
 * Revokes a session and every session opened from it. Returns those that this call revoked. A session that is being opened
 * from one of them is revoked too, or refused (`revoke_session` in the migrations).
 */
export async function revokeSessionTree(db: Database, id: SessionId, now: Date): Promise<SessionId[]> {
  return (await revokeOne(db, { id, now, isFamily: false })).map((row) => row.document_id)
}

/** `revokeSessionTree` for the session at the top of the tree of this one: itself when it has no parent. */
export async function revokeSessionFamily(db: Database, id: SessionId, now: Date): Promise<SessionId[]> {
  return (await revokeOne(db, { id, now, isFamily: true })).map((row) => row.document_id)
}

/**
 * `revokeSessionTree`, or with `isFamily` `revokeSessionFamily`, for the session of a refresh token, spent or not, of this
 * user. Of none, it revokes nothing.
 */
export async function revokeTokenTree(
  db: Database,
  { tokenHash, userId, isFamily, now }: { tokenHash: Buffer; userId: UserId; isFamily: boolean; now: Date },
): Promise<SessionId[]> {
  return (await revokeOfToken(db, { tokenHash, userId, now, isFamily })).map((row) => row.document_id)
}

const revokeTreeAhead = aheadStatement<{ id: SessionId; now: Date }>('select from revoke_session($id, $now)')

/** `revokeSessionTree` without its result; sent with the next statement of the transaction. */
export async function endSessionTree(db: Database, id: SessionId, now: Date): Promise<void> {
  await revokeTreeAhead(db, { id, now })
}

const clearAccount = closingStatement<{ account: AccountId; owner: UserId | null; now: Date }>(`
  left_sessions as (
    update session set account = null, updated_at = $now
    where document_id = any(array(
      select document_id from session where account = $account and ($owner::uuid is null or "user" = $owner)
      order by document_id for no key update)))`)

/**
 * Clears the current account of sessions where it is this one, of one user or of all, with the last statement of the
 * transaction.
 */
export async function clearSessionAccount(
  db: Database,
  input: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  const { account, userId, now } = input
  const [owner, notes] = userId === 'all' ? [null, '*'] : [userId, `u:${userId}`]
  await clearAccount(db, { account, owner, now }, { notes })
}

/** The owner of a session, for `GET /api/v3/auth/session`. */
export interface SessionUser {
  id: UserId
  email: string
  name: string | null
  avatarUrl: string | null
}

/** The caller's session, user and accounts. `session` is undefined for an API key. */
export interface SessionDescription {
  session: SessionRecord | undefined
  user: SessionUser & { isEmailVerified: boolean }
  accounts: AccountName[]
}

interface DescriptionColumns {
  user_id: string
  email: string
  name: string | null
  avatar_url: string | null
  is_email_verified: boolean
  accounts: AccountName[]
}

const selectDescription = statement<DescriptionColumns, { userId: UserId; sessionId: SessionId | null }>(`
  select u.document_id as user_id, u.email, u.name, u.avatar_url, u.email_verified_at is not null as is_email_verified,
    ${OF_SESSION}, accounts_of(u.document_id) as accounts
  from "user" u left join session s on s.document_id = $sessionId and s."user" = u.document_id
  where u.document_id = $userId and u.deleted_at is null`)

/** A user with one of its sessions and its accounts that are not deleted, the longest membership first. */
export async function findSessionDescription(
  db: Database,
  userId: UserId,
  sessionId: SessionId | null,
): Promise<SessionDescription | undefined> {
  const [row] = await selectDescription(db, { userId, sessionId })
  if (!row) return undefined
  const session = row as unknown as SessionColumns
  const { user_id: id, email, name, avatar_url: avatarUrl, is_email_verified: isEmailVerified } = row
  return {
    user: { id: id as UserId, email, name, avatarUrl, isEmailVerified },
    session: session.document_id ? toSessionRecord(session) : undefined,
    accounts: row.accounts,
  }
}

const deleteEnded = changeStatement<{ before: Date; limit: number }>(`
  delete from session where document_id = any(array(
    select s.document_id from session s
    where s.expires_at < $before and not exists (select from session child where child.parent = s.document_id)
    order by s.expires_at limit $limit for update skip locked))`)

/** Deletes up to `limit` sessions that ended before `before` and have no child sessions. Returns their number. */
export function deleteEndedSessions(db: Database, before: Date, limit: number): Promise<number> {
  return deleteEnded(db, { before, limit })
}
