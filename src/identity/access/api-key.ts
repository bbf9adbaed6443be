import { createHash } from 'node:crypto'
import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { buildFieldProblem, invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type ApiKeyRecord,
  findApiKey,
  findApiKeyWithHoldings,
  insertApiKey,
  type KeyMakerFacts,
  lockKeyMaker,
  revokeApiKeyRow,
} from './api-key.store.ts'
import { bindHoldings, checkMayEndKey, checkMayMakeKey } from './delegation.ts'
import { checkKeyMay, findOwners } from './own-rows.ts'
import { checkPatternsHaveEffect, checkPatternsKnown } from './pattern.ts'

export { endAccountApiKeys, endUserApiKeys } from './api-key.store.ts'

/** Limit of unrevoked, unexpired keys of one user. */
const LIVE_KEYS_LIMIT = 100

/** Dependencies of the operations on API keys. */
export interface ApiKeyDeps {
  ids: IdMaker
  random: Random
  /** The permissions of all routes: a pattern must match one of them. */
  listPermissions: () => readonly string[]
  /** Permissions with an effect when limited to some accounts. */
  listAccountPermissions: () => readonly string[]
}

/** The unrevoked key with this id. Throws 404, also for another user's key that the caller does not reach. */
export async function loadApiKey(
  db: Database,
  input: { id: string; caller: Caller; permission: string },
): Promise<ApiKeyRecord> {
  const owners = findOwners(input.caller, input.permission)
  const key = await findApiKey(db, { id: input.id })
  if (!key || !isOwnedBy(owners, key)) throw notFound('API key')
  return key
}

function isOwnedBy(owners: UserId | 'all', key: ApiKeyRecord): boolean {
  return owners === 'all' || key.userId === owners
}

/**
 * Creates a key for the caller: `sbx_` and 32 random bytes, returned once and stored as a hash. Its permissions are a
 * subset of the caller's, at creation and at each use. A key created with another key expires with that key at the
 * latest, and by default at the same time. With `account` it is limited to that account. Throws 422 for an unknown
 * permission or an `expiresAt` in the past or too late, 403 for a permission that the caller does not hold, 409
 * `limit_reached`, and 401 when the token was revoked in the meantime.
 */
export async function createApiKey(
  deps: ApiKeyDeps,
  db: Database,
  input: {
    name: string
    patterns: readonly string[]
    /** Binds the key to this account. */
    account: AccountId | null
    expiresAt: Date | null
    caller: Caller
    /** The permission that an API key needs to create another one. */
    permission: string
    now: Date
  },
): Promise<{ record: ApiKeyRecord; key: string }> {
  const { name, patterns, account, caller, now } = input
  checkKeyMay(caller, input.permission)
  checkPatternsKnown(patterns, deps.listPermissions())
  checkMayMakeKey(caller, patterns, account)
  if (account !== null) checkPatternsHaveEffect(patterns, deps.listAccountPermissions(), 'A key of one account')
  const { userId, sessionId, apiKeyId } = caller
  const facts = await lockKeyMaker(db, { userId, sessionId, apiKeyId, account, now })
  if (!facts.isTokenLive) throw buildTokenEnded()
  if (!facts.hasAccount)
    throw invalidField('account', 'unknown_account', 'There is no account with this id, or it was deleted.')
  // The caller is that of the start of the request: it may have left the account since.
  checkMayMakeKey(refreshCaller(caller, facts), patterns, account)
  const expiresAt = decideExpiry(input.expiresAt, facts, now)
  checkKeyLimit(facts)
  const key = `sbx_${deps.random.bytes(32).toString('base64url')}`
  const record = await insertApiKey(db, {
    id: deps.ids.next<'api key'>(),
    userId,
    account,
    createdWith: apiKeyId,
    name,
    tokenHash: createHash('sha256').update(key).digest(),
    hint: `${key.slice(0, 8)}…`,
    patterns: [...patterns],
    expiresAt,
    now,
  })
  return { record, key }
}

/** The caller with its user's permissions behind the lock. Pure. */
function refreshCaller(caller: Caller, { holdings }: KeyMakerFacts): Caller {
  return { ...caller, ...(caller.keyAccount === null ? holdings : bindHoldings(holdings, caller.keyAccount)) }
}

/** Expiry of a new key. Pure. Throws a 422 on `expires_at` for a time in the past or after the expiry of the token. */
function decideExpiry(wanted: Date | null, { tokenExpiresAt }: KeyMakerFacts, now: Date): Date | null {
  if (wanted !== null && wanted <= now)
    throw invalidField('expires_at', 'past', 'must be in the future; omit it for a key that does not expire')
  if (wanted === null || tokenExpiresAt === null) return wanted ?? tokenExpiresAt
  if (wanted <= tokenExpiresAt) return wanted
  const latest = tokenExpiresAt.toISOString()
  throw buildFieldProblem({
    path: 'expires_at',
    code: 'after_maker',
    message: `must not be after ${latest}, when the key of this request expires`,
    params: { instant: latest },
  })
}

function checkKeyLimit({ liveKeys }: KeyMakerFacts): void {
  if (liveKeys < LIVE_KEYS_LIMIT) return
  const text = `A user has at most ${LIVE_KEYS_LIMIT} API keys that are neither revoked nor expired. Revoke one first.`
  throw new Problem('limit_reached', text)
}

function buildTokenEnded(): Problem {
  return new Problem('unauthenticated', 'The session or API key was revoked during this request.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/**
 * Revokes a key, effective with the next request. A session needs no permission for the user's own key. Throws 404 for
 * a key outside the caller's scope or revoked in the meantime, 403 for one with more permissions than the caller.
 */
export async function revokeApiKey(
  db: Database,
  input: { id: string; caller: Caller; permission: string; now: Date },
): Promise<ApiKeyRecord> {
  const { id, caller, permission, now } = input
  const owners = findOwners(caller, permission)
  const own = caller.ceiling === null && (await revokeApiKeyRow(db, id, { owner: caller.userId, now }))
  if (own) return own
  const key = await findApiKeyWithHoldings(db, { id })
  if (!key || !isOwnedBy(owners, key)) throw notFound('API key')
  checkMayEndKey(caller, key)
  const revoked = await revokeApiKeyRow(db, id, { owner: 'all', now })
  if (!revoked) throw notFound('API key')
  return revoked
}
