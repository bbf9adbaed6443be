import { createHash } from 'node:crypto'
import type { Caller } from '../http/caller.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import {
  type AccountName,
  clearSessionAccount,
  findLivingSession,
  findRefreshToken,
  findSession,
  findSessionDescription,
  insertRefreshToken,
  insertSession,
  listAccountsOfUser,
  lockActiveUser,
  revokeSessionTree,
  revokeUserSessionRows,
  type SessionRecord,
  type SessionUser,
  spendRefreshToken,
} from './session.store.ts'
import { SESSION_JWT_SECONDS, type SessionKeys, signSessionToken } from './session-token.ts'

/** A session ends after this, however often it was refreshed. */
export const SESSION_LIFETIME_MS = 90 * 24 * 3_600_000

/** A refresh token that is not used for this long ends the session. */
export const REFRESH_LIFETIME_MS = 30 * 24 * 3_600_000

/** What the operations on sessions use. */
export interface SessionDeps {
  ids: IdMaker
  random: Random
  keys: SessionKeys
}

/** What a client holds after a sign-in or a refresh. */
export interface IssuedSession {
  sessionId: SessionId
  account: AccountName | null
  jwt: string
  /** How long the JWT lives from now. */
  expiresInSeconds: number
  /** Null for a session that cannot be refreshed: one opened by a handshake. */
  refreshToken: string | null
}

/** Where a session comes from. */
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

/** Makes a refresh token (docs/contract/sessions.md#refresh-tokens): `sbr_` and 32 random bytes; only its hash is kept. */
async function issueRefreshToken(deps: SessionDeps, db: Database, session: SessionRecord, now: Date): Promise<string> {
  const token = `sbr_${deps.random.bytes(32).toString('base64url')}`
  const expiresAt = earlier(new Date(now.getTime() + REFRESH_LIFETIME_MS), session.expiresAt)
  await insertRefreshToken(db, { tokenHash: hashToken(token), sessionId: session.id, expiresAt, now })
  return token
}

/**
 * Opens a session (docs/contract/sessions.md#session-jwt, docs/contract/sessions.md#refresh-tokens) in the caller's transaction. The current account is `accountId` if the user belongs to it, else
 * the one the user has belonged to longest, else none. A session with a `parentId` ends with it and lives no longer than it.
 * Undefined when the user is disabled or deleted, be it a moment ago: none is opened past that.
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
    now: Date
  },
): Promise<IssuedSession | undefined> {
  const { userId, origin, parent, now } = input
  if (!(await lockActiveUser(db, userId))) return undefined
  const accounts = await listAccountsOfUser(db, userId)
  const account = accounts.find(({ id }) => id === input.accountId) ?? accounts[0] ?? null
  const latest = new Date(now.getTime() + SESSION_LIFETIME_MS)
  const session = await insertSession(db, {
    id: deps.ids.next<'session'>(),
    userId,
    accountId: account?.id ?? null,
    parentId: parent?.id ?? null,
    address: origin.address,
    userAgent: origin.userAgent?.slice(0, 500) ?? null,
    expiresAt: parent ? earlier(latest, parent.expiresAt) : latest,
    now,
  })
  const refreshToken = input.isRefreshable === false ? null : await issueRefreshToken(deps, db, session, now)
  return { sessionId: session.id, account, ...signFor(deps, session, now), refreshToken }
}

/** What a client holds after a refresh. */
export type RotatedTokens = Omit<IssuedSession, 'account' | 'refreshToken'> & { refreshToken: string }

/** A session that was refreshed, and what its client holds from now on. */
export type Refreshed = { kind: 'refreshed'; session: SessionRecord; issued: RotatedTokens }

/** Why a refresh was refused, for the log and the audit trail only, and the session that the token belongs to. */
export interface RefreshRefusal {
  kind: 'refused'
  reason: 'unknown' | 'reused' | 'expired' | 'session_ended'
  session: SessionRecord | undefined
}

/**
 * Rotates a refresh token (docs/contract/sessions.md#refresh-tokens), in the caller's transaction. A spent token that is
 * presented again, by the attacker or by the legitimate client, ends its whole session and those opened from it. Of two
 * refreshes at once exactly one succeeds. What a refusal revoked must be committed with it.
 */
export async function refreshSession(
  deps: SessionDeps,
  tx: Database,
  input: { refreshToken: string; now: Date },
): Promise<Refreshed | RefreshRefusal> {
  const { now } = input
  const tokenHash = hashToken(input.refreshToken)
  const spent = await spendRefreshToken(tx, tokenHash, now)
  if (!spent) return revokeReused(tx, tokenHash, now)
  const session = await findLivingSession(tx, spent.sessionId, now)
  if (!session) return { kind: 'refused', reason: 'session_ended', session: await findSession(tx, spent.sessionId) }
  if (spent.expiresAt <= now) return { kind: 'refused', reason: 'expired', session }
  const refreshToken = await issueRefreshToken(deps, tx, session, now)
  return { kind: 'refreshed', session, issued: { sessionId: session.id, ...signFor(deps, session, now), refreshToken } }
}

async function revokeReused(tx: Database, tokenHash: Buffer, now: Date): Promise<RefreshRefusal> {
  const known = await findRefreshToken(tx, tokenHash)
  if (!known) return { kind: 'refused', reason: 'unknown', session: undefined }
  await revokeSessionTree(tx, known.sessionId, now)
  return { kind: 'refused', reason: 'reused', session: await findSession(tx, known.sessionId) }
}

/** Ends all sessions of a user, at once in every process. Returns those that this call ended. */
export function revokeUserSessions(db: Database, userId: UserId, now: Date): Promise<SessionId[]> {
  return revokeUserSessionRows(db, userId, now)
}

/** Takes an account out of the sessions that stand in it: of a user who leaves it, or of all when it is deleted. */
export function leaveAccount(
  db: Database,
  input: { account: AccountId; userId: UserId | 'all'; now: Date },
): Promise<void> {
  return clearSessionAccount(db, input)
}

/**
 * Signs the caller out: its own session, with `all` every session of the user, or with `refreshToken` the session that it
 * belongs to, if that is the caller's too. Returns the sessions that ended. Throws 409 for an API key: it has no session,
 * and whoever got hold of one must not be able to sign its owner out.
 */
export async function signOut(
  db: Database,
  input: { caller: Caller; all: boolean; refreshToken: string | undefined; now: Date },
): Promise<SessionId[]> {
  const { caller, now } = input
  if (caller.sessionId === null)
    throw new Problem('conflict', 'An API key has no session to end. To end the key itself, delete it.')
  if (input.all) return revokeUserSessionRows(db, caller.userId, now)
  if (input.refreshToken === undefined) return revokeSessionTree(db, caller.sessionId, now)
  const known = await findRefreshToken(db, hashToken(input.refreshToken))
  const session = known && (await findSession(db, known.sessionId))
  // An unknown token, or somebody else's, is already of no use to this caller (RFC 7009 section 2.2).
  return session?.userId === caller.userId ? revokeSessionTree(db, session.id, now) : []
}

/** The caller's session, user and accounts. `session` is undefined for an API key. */
export interface SessionDescription {
  session: SessionRecord | undefined
  user: SessionUser
  accounts: AccountName[]
}

/** Describes whom the caller's token stands for. */
export async function describeSession(db: Database, caller: Caller): Promise<SessionDescription> {
  const found = await findSessionDescription(db, caller.userId, caller.sessionId)
  if (!found) throw notFound('user')
  return found
}
