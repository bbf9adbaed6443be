import { createHash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Caller } from '../http/caller.ts'
import type { Database } from '../postgres/database.ts'
import { verifySessionToken } from '../session/session-token.ts'
import { findKeyCaller, findSessionCaller, touchApiKey } from './caller.store.ts'

/** How often the last use of a key is written down (D14). */
export const LAST_USED_PRECISION_MS = 60_000

/** What tells who a token stands for. */
export interface AuthenticateOptions {
  db: Database
  clock: Pick<Clock, 'now'>
  /** `SESSION_JWT_SECRET`: the first signs, all verify (D20). */
  sessionSecrets: readonly string[]
  /** `BASE_URL`. */
  issuer: () => string
}

/** An API key: `sbx_` and the base64url of 32 bytes (D14). */
const API_KEY_PATTERN = /^sbx_[A-Za-z0-9_-]{43}$/

/** The token of `Authorization: Bearer <token>` (RFC 6750 section 2.1). */
export function readBearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization ?? '')?.[1]
}

/**
 * Builds the function that tells who an `Authorization` header stands for: the user of a session JWT or the owner of an
 * API key. One statement reads the session or key, the user, its roles and its accounts, and nothing is remembered: what
 * changes takes effect with the next request, in every process (D11). Undefined for whatever does not hold.
 */
export function buildAuthenticate(
  options: AuthenticateOptions,
): (authorization: string | undefined) => Promise<Caller | undefined> {
  return async (authorization) => {
    const token = readBearerToken(authorization)
    if (token === undefined) return undefined
    const now = new Date(options.clock.now())
    return token.startsWith('sbx_') ? authenticateKey(options, token, now) : authenticateSession(options, token, now)
  }
}

async function authenticateSession(
  options: AuthenticateOptions,
  token: string,
  now: Date,
): Promise<Caller | undefined> {
  const keys = { secrets: options.sessionSecrets, issuer: options.issuer }
  const result = verifySessionToken(keys, token, now)
  if (!result.ok) return undefined
  const { sessionId, userId } = result.claims
  const holder = await findSessionCaller(options.db, { sessionId, userId, now })
  if (!holder) return undefined
  const { accountId } = holder
  return {
    userId,
    sessionId,
    apiKeyId: null,
    // An account that the user has left since is nobody's current account.
    accountId: accountId !== null && holder.accounts.includes(accountId) ? accountId : null,
    patterns: holder.patterns,
    accountPatterns: holder.accountPatterns,
    accounts: holder.accounts,
    keyPatterns: null,
  }
}

async function authenticateKey(options: AuthenticateOptions, token: string, now: Date): Promise<Caller | undefined> {
  if (!API_KEY_PATTERN.test(token)) return undefined
  const holder = await findKeyCaller(options.db, createHash('sha256').update(token).digest(), now)
  if (!holder) return undefined
  const before = new Date(now.getTime() - LAST_USED_PRECISION_MS)
  if (holder.lastUsedAt === null || holder.lastUsedAt <= before)
    await touchApiKey(options.db, { id: holder.apiKeyId, before, now })
  return {
    userId: holder.userId,
    sessionId: null,
    apiKeyId: holder.apiKeyId,
    accountId: null,
    patterns: holder.patterns,
    accountPatterns: holder.accountPatterns,
    accounts: holder.accounts,
    keyPatterns: holder.keyPatterns,
  }
}
