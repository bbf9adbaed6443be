import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Caller, Narrowing } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { bindHoldings, type Holdings, intersectPatterns } from '../access/delegation.ts'
import { PORTAL_ROLES } from '../access/system-roles.ts'
import { buildEnterPath } from '../session/by-connection.ts'
import { earlier } from '../session/session.ts'
import { verifySessionToken } from '../session/token/session-token.ts'
import {
  findKeyCaller,
  findPortalCaller,
  findSessionCaller,
  type NarrowedRecord,
  NO_SESSION,
  touchApiKey,
  touchSession,
} from './caller.store.ts'
import type { CachedCaller, CallerCache } from './caller-cache.ts'

/** Interval between updates of a key's last use (docs/contract/identity.md#api-keys). */
const LAST_USED_PRECISION_MS = 60_000

/** Interval between updates of a session's last use (docs/contract/sessions.md#last-use). */
const SESSION_USED_PRECISION_MS = 5 * 60_000

/** Dependencies of authentication. */
export interface AuthenticateOptions {
  db: Database
  clock: Pick<Clock, 'now'>
  /** `SESSION_JWT_SECRET`: the first signs, all verify. */
  sessionSecrets: readonly string[]
  /** `BASE_URL`. */
  issuer: () => string
  cache: CallerCache
  /** The permissions within the scopes of an app, which are separated by spaces (RFC 6749 section 3.3). */
  findPermissionsOf: (scope: string) => readonly string[]
}

/** An API key: `sbx_` and the base64url of 32 bytes (docs/contract/identity.md#api-keys). */
const API_KEY_PATTERN = /^sbx_[A-Za-z0-9_-]{43}$/

/** A token of the portal: `sbp_` and the base64url of 32 bytes (docs/contract/portal.md#sessions). */
const PORTAL_TOKEN_PATTERN = /^sbp_[A-Za-z0-9_-]{43}$/

/** The token of `Authorization: Bearer <token>` (RFC 6750 section 2.1). */
export function readBearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization ?? '')?.[1]
}

/**
 * Builds the function that finds the caller of an `Authorization` header: the user of a session JWT, within the scopes
 * of the session's app, the owner of an API key, or a portal session. A cached caller costs no round trip; else one
 * statement reads the session or key, the user, its roles and its accounts. Undefined for an invalid token.
 */
export function buildAuthenticate(
  options: AuthenticateOptions,
): (authorization: string | undefined) => Promise<Caller | undefined> {
  return async (authorization) => {
    const token = readBearerToken(authorization)
    if (token === undefined) return undefined
    const now = new Date(options.clock.now())
    const found = await findCached(options, token, now)
    return found?.caller
  }
}

function findCached(options: AuthenticateOptions, token: string, now: Date): Promise<CachedCaller | undefined> {
  if (token.startsWith('sbx_'))
    return authenticateByHash(options, { token, pattern: API_KEY_PATTERN, now }, readKeyCaller)
  if (token.startsWith('sbp_'))
    return authenticateByHash(options, { token, pattern: PORTAL_TOKEN_PATTERN, now }, readPortalCaller)
  // The key is the whole token with its signature, so a cached token needs no second verification.
  return options.cache.read(token, () => authenticateSession(options, token, now), now)
}

async function authenticateSession(
  { db, findPermissionsOf, ...keys }: AuthenticateOptions,
  token: string,
  now: Date,
): Promise<CachedCaller | undefined> {
  const result = verifySessionToken({ secrets: keys.sessionSecrets, issuer: keys.issuer }, token, now)
  if (!result.ok) return undefined
  const { sessionId, userId, expiresAt } = result.claims
  const found = await findSessionCaller(db, { sessionId, userId, now })
  if (!found) return undefined
  const { accountId, accounts, client } = found
  // A proven session reaches less from the end of its proof on.
  const tokenEndsAt = earlier(earlier(found.expiresAt, expiresAt), found.narrowed?.provenUntil ?? expiresAt)
  const caller: Caller = {
    userId,
    sessionId,
    apiKeyId: null,
    clientId: client?.id ?? null,
    // The user may have left the current account since.
    accountId: accountId !== null && accounts.includes(accountId) ? accountId : null,
    patterns: found.patterns,
    accountPatterns: found.accountPatterns,
    membershipPatterns: found.membershipPatterns,
    accounts,
    ceiling: client && findPermissionsOf(client.scope),
    keyAccount: null,
    proof: found.proof,
    ...describeNarrowing(found, buildEnterPath),
    expiresAt: tokenEndsAt,
  }
  const before = new Date(now.getTime() - SESSION_USED_PRECISION_MS)
  const isUseDue = found.lastUsedAt <= before
  if (isUseDue) await touchSession(db, { id: sessionId, before, now })
  // Cached until its last use has to be written again.
  const touchAt = new Date((isUseDue ? now : found.lastUsedAt).getTime() + SESSION_USED_PRECISION_MS)
  return { caller, userId, tokenChanges: [`s:${sessionId}`], expiresAt: earlier(touchAt, tokenEndsAt) }
}

/** Reason why a token is refused in an account that proven sessions alone reach. Pure. */
function describeNarrowing(
  { narrowed, accountPatterns }: Pick<Holdings, 'accountPatterns'> & { narrowed: NarrowedRecord | null },
  findPath: (connection: string) => string | null,
): { narrowing?: Narrowing } {
  if (narrowed === null) return {}
  const { patterns, ...rest } = narrowed
  const lacking = rest.provenUntil === null ? [...accountPatterns, ...patterns] : []
  return { narrowing: { ...rest, lacking, enterPath: findPath(rest.connection) } }
}

function pickHoldings({ patterns, accountPatterns, membershipPatterns, accounts }: Holdings): Holdings {
  return { patterns, accountPatterns, membershipPatterns, accounts }
}

async function authenticateByHash(
  { db, cache }: AuthenticateOptions,
  { token, pattern, now }: { token: string; pattern: RegExp; now: Date },
  readCaller: typeof readKeyCaller,
): Promise<CachedCaller | undefined> {
  if (!pattern.test(token)) return undefined
  const hash = createHash('sha256').update(token).digest()
  return cache.read(`h:${hash.toString('base64')}`, () => readCaller(db, hash, now), now)
}

/** The caller of a portal session: its API key, in its account, by role (docs/contract/portal.md#sessions). */
async function readPortalCaller(db: Database, hash: Buffer, now: Date): Promise<CachedCaller | undefined> {
  const found = await findPortalCaller(db, { tokenHash: hash, now })
  if (!found) return undefined
  const { portal, role, expiresAt, apiKeyId, userId, keyPatterns, account } = found
  const caller: Caller = {
    ...NO_SESSION,
    userId,
    apiKeyId,
    ...bindHoldings(found, account),
    ceiling: intersectPatterns(keyPatterns, PORTAL_ROLES[role]),
    keyAccount: account,
    portal,
    expiresAt,
  }
  return { caller, userId, tokenChanges: [`v:${portal.id}`, `k:${apiKeyId}`], expiresAt }
}

async function readKeyCaller(db: Database, hash: Buffer, now: Date): Promise<CachedCaller | undefined> {
  const found = await findKeyCaller(db, { tokenHash: hash, now })
  if (!found) return undefined
  const before = new Date(now.getTime() - LAST_USED_PRECISION_MS)
  const isUseDue = found.lastUsedAt === null || found.lastUsedAt <= before
  if (isUseDue) await touchApiKey(db, { id: found.apiKeyId, before, now })
  const caller: Caller = {
    ...NO_SESSION,
    userId: found.userId,
    apiKeyId: found.apiKeyId,
    ...(found.keyAccount === null ? pickHoldings(found) : bindHoldings(found, found.keyAccount)),
    ceiling: found.keyPatterns,
    keyAccount: found.keyAccount,
    ...describeNarrowing(found, () => null),
    expiresAt: found.expiresAt,
  }
  // Cached until its last use has to be written again.
  const usedAt = isUseDue || found.lastUsedAt === null ? now : found.lastUsedAt
  const touchAt = new Date(usedAt.getTime() + LAST_USED_PRECISION_MS)
  const expiresAt = found.expiresAt !== null && found.expiresAt < touchAt ? found.expiresAt : touchAt
  return { caller, userId: found.userId, tokenChanges: [`k:${found.apiKeyId}`], expiresAt }
}
