import { createHash } from 'node:crypto'
import type { Caller } from '../http/caller.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import {
  type AccountName,
  clearSessionAccount,
  endUserSessionRows,
  findSessionDescription,
  findSessionOfToken,
  insertSession,
  lockActiveUser,
  type NewRefreshToken,
  revokeSessionTree,
  revokeTokenTree,
  revokeUserSessionRows,
  rotateRefreshToken,
  type SessionRecord,
  type SessionUser,
} from './session.store.ts'
import { SESSION_JWT_SECONDS, type SessionKeys, signSessionToken } from './session-token.ts'

/** Lifetime of a session; refreshes do not extend it. */
export const SESSION_LIFETIME_MS = 90 * 24 * 3_600_000

/** Lifetime of an unused refresh token. */
export const REFRESH_LIFETIME_MS = 30 * 24 * 3_600_000

/** Dependencies of the operations on sessions. */
export interface SessionDeps {
  ids: IdMaker
  random: Random
  keys: SessionKeys
}

/** The tokens of a sign-in or a refresh. */
export interface IssuedSession {
  sessionId: SessionId
  account: AccountName | null
  jwt: string
  /** Lifetime of the JWT from now. */
  expiresInSeconds: number
  /** Null for a session of a handshake, which cannot be refreshed. */
  refreshToken: string | null
}

/** The origin of a session. */
export interface SessionOrigin {
  address: string | null
  userAgent: string | null
}

function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function earlier(one: Date, other: Date): Date {
  return one < other ? one : other
}

function signFor(deps: SessionDeps, session: SessionRecord, now: Date): { jwt: string; expiresInSeconds: number } {
  const expiresAt = earlier(new Date(now.getTime() + SESSION_JWT_SECONDS * 1000), session.expiresAt)
  const jwt = signSessionToken(deps.keys, {
    userId: session.userId,
    sessionId: session.id,
    accountId: session.accountId,
    tokenId: deps.ids.next<'session token'>(),
    issuedAt: now,
    expiresAt,
  })
  return { jwt, expiresInSeconds: Math.floor((expiresAt.getTime() - now.getTime()) / 1000) }
}

/** Creates a refresh token (docs/contract/sessions.md#refresh-tokens): `sbr_` and 32 random bytes; only its hash is stored. */
function createRefreshToken({ random }: SessionDeps, now: Date): { token: string; kept: NewRefreshToken } {
  const token = `sbr_${random.bytes(32).toString('base64url')}`
  return { token, kept: { tokenHash: hashToken(token), expiresAt: new Date(now.getTime() + REFRESH_LIFETIME_MS) } }
}

/**
 * Opens a session (docs/contract/sessions.md#session-jwt, docs/contract/sessions.md#refresh-tokens) in the caller's
 * transaction. The current account is `accountId` if the user belongs to it, else the one with the longest membership,
 * else none. A session with a `parentId` is revoked with it and expires with it at the latest. Undefined when the user is
 * disabled or deleted, or `passwordHash` is no longer the hash of its password.
 */
export async function issueSession(
  deps: SessionDeps,
  db: Database,
  input: {
    userId: UserId
    origin: SessionOrigin
    accountId?: AccountId | null
    parent?: SessionRecord
    isRefreshable?: boolean
    /** The hash that the password of this sign-in was checked against. */
    passwordHash?: string
    now: Date
  },
): Promise<IssuedSession | undefined> {
  const { userId, origin, parent, now } = input
  const accounts = await lockActiveUser(db, userId, input.passwordHash)
  if (!accounts) return undefined
  const account = accounts.find(({ id }) => id === input.accountId) ?? accounts[0] ?? null
  const latest = new Date(now.getTime() + SESSION_LIFETIME_MS)
  const expiresAt = parent ? earlier(latest, parent.expiresAt) : latest
  const refresh = input.isRefreshable === false ? undefined : createRefreshToken(deps, now)
  const session = await insertSession(db, {
    id: deps.ids.next<'session'>(),
    userId,
    accountId: account?.id ?? null,
    parentId: parent?.id ?? null,
    address: origin.address,
    userAgent: origin.userAgent?.slice(0, 500) ?? null,
    expiresAt,
    refresh: refresh ? { ...refresh.kept, expiresAt: earlier(refresh.kept.expiresAt, expiresAt) } : null,
    now,
  })
  return { sessionId: session.id, account, ...signFor(deps, session, now), refreshToken: refresh?.token ?? null }
}

/** The tokens of a refresh. */
export type RotatedTokens = Omit<IssuedSession, 'account' | 'refreshToken'> & { refreshToken: string }

/** A refreshed session and its new tokens. */
export type Refreshed = { kind: 'refreshed'; session: SessionRecord; issued: RotatedTokens }

/** The reason of a refused refresh, for the log and the audit trail only, and the session of the token. */
export interface RefreshRefusal {
  kind: 'refused'
  reason: 'unknown' | 'reused' | 'expired' | 'session_ended'
  session: SessionRecord | undefined
}

/**
 * Rotates a refresh token (docs/contract/sessions.md#refresh-tokens), in the caller's transaction. Reuse of a spent token,
 * by the attacker or by the legitimate client, revokes its session and those opened from it. Exactly one of two
 * concurrent refreshes succeeds. The caller must commit the revocation of a refusal.
 */
export async function refreshSession(
  deps: SessionDeps,
  tx: Database,
  input: { refreshToken: string; now: Date },
): Promise<Refreshed | RefreshRefusal> {
  const { now } = input
  const tokenHash = hashToken(input.refreshToken)
  const { token: refreshToken, kept: next } = createRefreshToken(deps, now)
  const spent = await rotateRefreshToken(tx, { tokenHash, next, now })
  if (!spent) return revokeReused(tx, tokenHash, now)
  const { session } = spent
  if (!spent.isLiving) return { kind: 'refused', reason: 'session_ended', session }
  if (spent.isExpired) return { kind: 'refused', reason: 'expired', session }
  return { kind: 'refreshed', session, issued: { sessionId: session.id, ...signFor(deps, session, now), refreshToken } }
}

async function revokeReused(tx: Database, tokenHash: Buffer, now: Date): Promise<RefreshRefusal> {
  const session = await findSessionOfToken(tx, tokenHash)
  if (!session) return { kind: 'refused', reason: 'unknown', session: undefined }
  await revokeSessionTree(tx, session.id, now)
  return { kind: 'refused', reason: 'reused', session }
}

/** Revokes all sessions of a user, at once in every process, with the last statement of the transaction. */
export function endUserSessions(db: Database, userId: UserId, now: Date): Promise<void> {
  return endUserSessionRows(db, userId, now)
}

/**
 * Clears the current account of sessions where it is this one, of a user who leaves it, or of all when it is deleted, with
 * the last statement of the transaction.
 */
export function leaveAccount(
  db: Database,
  input: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  return clearSessionAccount(db, input)
}

/**
 * Signs the caller out: revokes its session, with `all` every session of the user, or with `refreshToken` the caller's
 * session of that token. Returns the revoked sessions. Throws 409 for an API key: it has no session, and a leaked key must
 * not sign its owner out.
 */
export async function signOut(
  db: Database,
  input: { caller: Caller; all: boolean; refreshToken: string | undefined; now: Date },
): Promise<SessionId[]> {
  const { caller, now } = input
  if (caller.sessionId === null)
    throw new Problem('conflict', 'An API key has no session. To revoke the key, delete it.')
  if (input.all) return revokeUserSessionRows(db, caller.userId, now)
  if (input.refreshToken === undefined) return revokeSessionTree(db, caller.sessionId, now)
  // An unknown token, or another user's, is not an error (RFC 7009 section 2.2).
  return revokeTokenTree(db, { tokenHash: hashToken(input.refreshToken), userId: caller.userId, now })
}

/** The caller's session, user and accounts. `session` is undefined for an API key. */
export interface SessionDescription {
  session: SessionRecord | undefined
  user: SessionUser
  accounts: AccountName[]
}

/** Describes the caller: user, session, accounts and permissions. */
export async function describeSession(db: Database, caller: Caller): Promise<SessionDescription> {
  const found = await findSessionDescription(db, caller.userId, caller.sessionId)
  if (!found) throw notFound('user')
  return found
}
