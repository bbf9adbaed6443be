import { createHash } from 'node:crypto'
import type { AccountId, IdMaker, SessionId, UserId } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { LAST_INSTANT } from '../../http/shape/instant.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { endUserApiKeys } from '../access/api-key.ts'
import { endAccessRows } from './access-end.store.ts'
import { type AuthMethod, rateMethods } from './auth-method.ts'
import { buildConnectionRequired, type ProvenByConnection } from './by-connection.ts'
import {
  type AccountName,
  findSession,
  findSessionDescription,
  insertSession,
  lockActiveUser,
  type NewRefreshToken,
  revokeSessionTree,
  revokeTokenTree,
  type SessionClient,
  type SessionDescription,
  type SessionRecord,
} from './session.store.ts'
import { SESSION_JWT_SECONDS, type SessionKeys, signSessionToken } from './token/session-token.ts'

export { endUserAccess } from './access-end.store.ts'
export { leaveAccount } from './session.store.ts'

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

/** The hash of a refresh token, as the table keeps it. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** The earlier of two instants. */
export function earlier(date: Date, other: Date): Date {
  return date < other ? date : other
}

/** Signs a JWT for a session: for an hour, and no longer than the session. */
export function signFor(
  deps: SessionDeps,
  session: SessionRecord,
  now: Date,
): { jwt: string; expiresInSeconds: number } {
  const expiresAt = earlier(new Date(now.getTime() + SESSION_JWT_SECONDS * 1000), session.expiresAt)
  const jwt = signSessionToken(deps.keys, {
    userId: session.userId,
    sessionId: session.id,
    accountId: session.accountId,
    tokenId: deps.ids.next<'session token'>(),
    amr: session.amr,
    acr: session.acr,
    authTime: session.authTime,
    client: session.client,
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

/** A session to open for a user. */
interface OpenedSession {
  userId: UserId
  /** Those of the user, the longest membership first. */
  accounts: readonly AccountName[]
  origin: SessionOrigin
  accountId?: AccountId | null
  parent?: SessionRecord
  /** The app that the session is for. Default: that of the parent. */
  client?: SessionClient
  /** A session that this one ends with, without copying how its user signed in. */
  endsWith?: SessionId | null
  /** The latest expiry of the session. */
  endsAt?: Date
  isRefreshable?: boolean
  /** The methods of the sign-in. Default: those of the parent and `sso`; without a parent, none. */
  amr?: readonly AuthMethod[]
  /** Default: that of the parent, else the one of `amr` (`rateMethods`). */
  acr?: string
  /** Time at which the user proved its identity. Default: that of the parent, else now. */
  authTime?: Date
  now: Date
}

/**
 * Opens a session (docs/contract/sessions.md#session-jwt, docs/contract/sessions.md#refresh-tokens) in the caller's
 * transaction. The current account is `accountId` if the user belongs to it, else the one with the longest membership,
 * else none. A session with a `parent` is revoked with it and expires with it at the latest; it copies how and when the
 * user signed in. Undefined when the user is disabled or deleted, `passwordHash` is no longer the hash of its password,
 * or the access of the user was revoked after `begunAt`. Throws 403 `connection_required` for a user whose account
 * closed this way in (docs/contract/connections.md#closed-ways-in).
 */
export async function issueSession(
  deps: SessionDeps,
  db: Database,
  input: Omit<OpenedSession, 'accounts' | 'endsWith' | 'endsAt'> & {
    /** The hash that the password of this sign-in was checked against. */
    passwordHash?: string
    /** Start of a sign-in of several requests. */
    begunAt?: Date
    byConnection?: ProvenByConnection
  },
): Promise<IssuedSession | undefined> {
  const { userId, passwordHash = null, begunAt = null, byConnection, ...rest } = input
  if (byConnection?.locked) {
    const { account: accountId, endsAt, locked } = byConnection
    return openLockedSession(deps, db, { ...rest, userId, accountId, endsAt, accounts: [locked] })
  }
  const found = await lockActiveUser(db, { userId, passwordHash, begunAt })
  if (!found) return undefined
  const { accounts, requiredConnection } = found
  if (byConnection) {
    const { account: accountId, endsAt } = byConnection
    return openLockedSession(deps, db, { ...rest, userId, accountId, endsAt, accounts })
  }
  if (requiredConnection !== null) throw buildConnectionRequired(requiredConnection)
  return openLockedSession(deps, db, { ...rest, userId, accounts })
}

/** The rest of `issueSession`, for a caller that has locked the user and found it active. */
export async function openLockedSession(deps: SessionDeps, db: Database, input: OpenedSession): Promise<IssuedSession> {
  const { userId, accounts, origin, parent, now } = input
  const account = accounts.find(({ id }) => id === input.accountId) ?? accounts[0] ?? null
  const latest = earlier(new Date(now.getTime() + SESSION_LIFETIME_MS), input.endsAt ?? LAST_INSTANT)
  const expiresAt = parent ? earlier(latest, parent.expiresAt) : latest
  const refresh = input.isRefreshable === false ? undefined : createRefreshToken(deps, now)
  const session = await insertSession(db, {
    id: deps.ids.next<'session'>(),
    userId,
    accountId: account?.id ?? null,
    parentId: parent?.id ?? input.endsWith ?? null,
    client: input.client ?? parent?.client ?? null,
    address: origin.address,
    userAgent: origin.userAgent?.slice(0, 500) ?? null,
    ...describeSignIn(input),
    expiresAt,
    refresh: refresh ? { ...refresh.kept, expiresAt: earlier(refresh.kept.expiresAt, expiresAt) } : null,
    now,
  })
  return { sessionId: session.id, account, ...signFor(deps, session, now), refreshToken: refresh?.token ?? null }
}

/** The session's record of how and when the user signed in (docs/contract/sessions.md#how-a-user-signed-in). Pure. */
function describeSignIn(input: OpenedSession): Pick<SessionRecord, 'amr' | 'acr' | 'authTime'> {
  const { parent, now } = input
  const amr = [...new Set<string>(input.amr ?? (parent ? [...parent.amr, 'sso'] : []))]
  return {
    amr,
    acr: input.acr ?? parent?.acr ?? rateMethods(amr),
    authTime: input.authTime ?? parent?.authTime ?? now,
  }
}

/** Scope of a sign-out: a session; with `all` every session of the user, or every other one. */
export interface SignOut {
  caller: Pick<Caller, 'userId' | 'sessionId'>
  all: boolean | 'others'
  /** With `all`: whether apps stay connected, and whether API keys stay valid. Default false. */
  keepApps?: boolean | undefined
  keepApiKeys?: boolean | undefined
  /** Whether the parent session of a handshake is revoked too, with every session opened from it. */
  family?: boolean
  refreshToken: string | undefined
  now: Date
}

/**
 * Signs the caller out: revokes the session of `SignOut` and those opened from it. Returns the revoked sessions. Throws 409
 * for an API key: it has no session, and a leaked key must not sign its owner out.
 */
export async function signOut(db: Database, input: SignOut): Promise<SessionId[]> {
  const { caller, now } = input
  if (caller.sessionId === null)
    throw new Problem('conflict', 'An API key has no session. To revoke the key, delete it.')
  if (input.all) return signOutEverywhere(db, input)
  for (const [name, value] of Object.entries({ keep_apps: input.keepApps, keep_api_keys: input.keepApiKeys }))
    if (value !== undefined) throw invalidField(name, 'without_all', 'is accepted only together with all')
  const isFamily = input.family ?? false
  if (input.refreshToken === undefined) return revokeSessionTree(db, { id: caller.sessionId, isFamily, now })
  // An unknown token, or another user's, is not an error (RFC 7009 section 2.2).
  return revokeTokenTree(db, { tokenHash: hashToken(input.refreshToken), userId: caller.userId, isFamily, now })
}

async function signOutEverywhere(
  db: Database,
  { caller: { userId, sessionId }, all, keepApps = false, keepApiKeys = false, now }: SignOut,
): Promise<SessionId[]> {
  const spared = all === 'others' && sessionId !== null ? { kept: sessionId } : {}
  const ended = await endAccessRows(db, { userId, keepApps, ...spared, now })
  if (!keepApiKeys) await endUserApiKeys(db, { userId, now })
  return ended
}

/** Describes the caller: user, session, accounts and permissions. */
export async function describeSession(db: Database, caller: Caller): Promise<SessionDescription> {
  const found = await findSessionDescription(db, caller)
  if (!found) throw notFound('user')
  return found
}

/** The session with this id. Throws 404. */
export async function loadSession(db: Database, id: SessionId): Promise<SessionRecord> {
  const session = await findSession(db, { id })
  if (!session) throw notFound('session')
  return session
}

/** The session of the caller's token. Throws 409 for an API key, which has none. */
export async function loadCallerSession(db: Database, caller: Caller): Promise<SessionRecord> {
  if (caller.sessionId === null)
    throw new Problem('conflict', 'An API key has no session. Use the session JWT of a user.')
  return loadSession(db, caller.sessionId)
}
