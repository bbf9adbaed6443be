import type { AccountId, ConnectionId, SessionId, UserId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import {
  aheadStatement,
  closingStatement,
  type Joined,
  rowStatement,
  statement,
} from '../../postgres/statement/statement.ts'

/** The app that a session is for (docs/contract/oauth-exchange.md#scope-ceiling). */
export interface SessionClient {
  id: string
  /** Scopes that the user granted to the app, separated by spaces. */
  scope: string
  /** The grant that the session ends with; null when the engine names none. */
  grantId: string | null
}

/**
 * A stored session. `accountId` is the current account, `parentId` the session that this one was opened from by a
 * handshake (docs/contract/sso.md#exchange-checks), `amr` the methods of the sign-in
 * (docs/contract/sessions.md#how-a-user-signed-in), `lastUsedAt` exact to some minutes
 * (docs/contract/sessions.md#last-use).
 */
export const session = defineRecord(
  'session',
  [
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
  ],
  { user: 'userId', account: 'accountId', parent: 'parentId' },
)
export type StoredSession = RecordOf<typeof session>

export interface SessionRecord extends Omit<StoredSession, 'clientId' | 'scope' | 'grantId'> {
  /** Null for a session of the user. */
  client: SessionClient | null
}

/** An account in the answer of a sign-in. */
export interface AccountName {
  id: AccountId
  name: string
}

/** The members of the session `s`, as SQL. */
export const OF_SESSION = session.members('s')

/** Maps `OF_SESSION`. */
export function toSessionRecord({ clientId, scope, grantId, ...row }: StoredSession): SessionRecord {
  return { ...row, client: clientId === null ? null : { id: clientId, scope: scope ?? '', grantId } }
}

/** A session with the members of its app, as the wire shows them. */
export function withClient<Row extends Pick<SessionRecord, 'client'>>(row: Row) {
  return { ...row, clientId: row.client?.id ?? null, scope: row.client?.scope ?? null }
}

/** A stored refresh token. */
export interface NewRefreshToken {
  tokenHash: Buffer
  expiresAt: Date
}

/** A new session. */
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
  const { refresh, now, ...opened } = row
  const { id: clientId = null, scope = null, grantId = null } = opened.client ?? {}
  const { tokenHash = null, expiresAt: tokenExpiresAt = null } = refresh ?? {}
  await insert(db, { ...opened, now, clientId, scope, grantId, tokenHash, tokenExpiresAt })
  return { ...opened, lastUsedAt: now, revokedAt: null, createdAt: now, updatedAt: now }
}

/** A user who signs in. `requiredConnection` is the one by which alone it may, where an account demands that. */
export interface SigningIn {
  accounts: AccountName[]
  requiredConnection: ConnectionId | null
}

/**
 * Locks an active user until the transaction ends, and returns its accounts behind the lock: those that are not deleted,
 * the longest membership first. A transaction that disables the user or changes the password waits for this one, and then
 * revokes its session with the others. Undefined when the user is not active, `passwordHash` is given and no longer the
 * user's, or its access was ended after `begunAt`, when the sign-in began.
 */
export const lockActiveUser = rowStatement<
  SigningIn,
  { userId: UserId; passwordHash: string | null; begunAt: Date | null }
>(`
  with u as (
    select document_id, email from "user"
    where document_id = $userId and is_actived and deleted_at is null
      and ($passwordHash::text is null or password_hash = $passwordHash)
      and ($begunAt::timestamptz is null or access_ended_at is null or access_ended_at <= $begunAt)
    for no key update
  )
  select open_accounts_of(u.document_id) as accounts, required_connection_of(u.document_id, u.email) as "requiredConnection" from u`)

/** The session with this id, in any state. */
export const findSession = rowStatement<StoredSession, { id: SessionId }, SessionRecord>(
  `select ${OF_SESSION} from session s where s.document_id = $id`,
  toSessionRecord,
)

/**
 * Revokes a session and every session opened from it; with `isFamily` from the session at the top of its tree on. Returns
 * those that this call revoked. One that is being opened from them is revoked too, or refused (`revoke_session` in the migrations).
 */
export const revokeSessionTree = statement<
  { document_id: SessionId },
  { id: SessionId; now: Date; isFamily: boolean },
  SessionId
>(
  `select revoke_session(case when $isFamily then root_session($id) else $id end, $now) as document_id`,
  (row) => row.document_id,
)

/** `revokeSessionTree` for the session of a refresh token, spent or not, of this user. Of none, it revokes nothing. */
export const revokeTokenTree = statement<
  { document_id: SessionId },
  { tokenHash: Buffer; userId: UserId; now: Date; isFamily: boolean },
  SessionId
>(
  `select revoke_session(case when $isFamily then root_session(t.session) else t.session end, $now) as document_id
  from session_refresh t
  where t.token_hash = $tokenHash and (select "user" from session where document_id = t.session) = $userId`,
  (row) => row.document_id,
)

/** `revokeSessionTree` without its result; sent with the next statement of the transaction. */
export const endSessionTree = aheadStatement<{ id: SessionId; now: Date }>('select from revoke_session($id, $now)')

const clearAccount = closingStatement<{ account: AccountId; owner: UserId | null; now: Date }>(`
  left_sessions as (
    update session set account = null, updated_at = $now
    where document_id = any(array(
      select document_id from session where account = $account and ($owner::uuid is null or "user" = $owner)
      order by document_id for no key update)))`)

/** Clears the current account of sessions where it is this one, of one user or of all. */
export async function leaveAccount(
  db: Database,
  input: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  const { account, userId, now } = input
  const [owner, invalidations] = userId === 'all' ? [null, '*'] : [userId, `u:${userId}`]
  await clearAccount(db, { account, owner, now }, { invalidations })
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

type DescriptionRow = Joined<StoredSession> & {
  ownerId: UserId
  email: string
  name: string | null
  avatarUrl: string | null
  isEmailVerified: boolean
  accounts: AccountName[]
}

/** A user with one of its sessions and its accounts that are not deleted, the longest membership first. */
export const findSessionDescription = rowStatement<
  DescriptionRow,
  { userId: UserId; sessionId: SessionId | null },
  SessionDescription
>(
  `select u.document_id as "ownerId", u.email, u.name, u.avatar_url as "avatarUrl",
    u.email_verified_at is not null as "isEmailVerified",
    ${OF_SESSION}, accounts_of(u.document_id) as accounts
  from "user" u left join session s on s.document_id = $sessionId and s."user" = u.document_id
  where u.document_id = $userId and u.deleted_at is null`,
  ({ ownerId: id, email, name, avatarUrl, isEmailVerified, accounts, ...found }) => ({
    user: { id, email, name, avatarUrl, isEmailVerified },
    session: found.id === null ? undefined : toSessionRecord(found as StoredSession),
    accounts,
  }),
)

/** Deletes up to `limit` sessions that ended before `before` and have no child sessions. Returns their number. */
export const deleteEndedSessions = deletionOfOld('session', {
  key: 'document_id',
  time: 'expires_at',
  and: 'not exists (select from session child where child.parent = r.document_id)',
})
