import { createHash } from 'node:crypto'
import { type Caller, findPermissionScope, matchesPattern } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { IdMaker, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import {
  type ApiKeyId,
  type ApiKeyRecord,
  findApiKey,
  insertApiKey,
  type KeyMakerFacts,
  lockKeyOwner,
  readKeyMakerFacts,
  revokeApiKeyRow,
  revokeUserApiKeyRows,
} from './api-key.store.ts'
import { checkMayEndKey, checkMayMakeKey } from './delegation.ts'
import { checkPatternsKnown } from './pattern.ts'

/** Unrevoked, unexpired keys of one user at most. */
const LIVE_KEYS_LIMIT = 100

/** What the operations on API keys use. */
export interface ApiKeyDeps {
  ids: IdMaker
  random: Random
  /** Every permission that some route needs: what a pattern may name. */
  listPermissions: () => readonly string[]
}

/**
 * Checks that an API key may itself deal with API keys. A person deals with their own keys by right; a key does so only if it
 * holds the permission, or a leaked narrow one could make itself a successor without an end. Throws 403.
 */
function checkKeyMay(caller: Caller, permission: string): void {
  if (caller.keyPatterns === null || caller.keyPatterns.some((pattern) => matchesPattern(pattern, permission))) return
  throw new Problem('permission_denied', `This API key does not hold ${permission}.`)
}

/** Whose keys `caller` sees and ends: its own, or with the permission everybody's. */
export function findKeyOwners(caller: Caller, permission: string): UserId | 'all' {
  checkKeyMay(caller, permission)
  return findPermissionScope(caller, permission) === 'all' ? 'all' : caller.userId
}

/** The unrevoked key with this id, if the caller may see it. Throws 404: also for a key of somebody else. */
export async function loadApiKey(
  db: Database,
  input: { id: string; caller: Caller; permission: string },
): Promise<ApiKeyRecord> {
  const owners = findKeyOwners(input.caller, input.permission)
  const key = await findApiKey(db, input.id)
  if (!key || (owners !== 'all' && key.userId !== owners)) throw notFound('API key')
  return key
}

/**
 * Makes a key for the caller: `sbx_` and 32 random bytes, returned once and kept as a hash. It holds a subset of what the
 * caller holds now, and at each use no more than what the caller holds then. A key that a key makes ends with it at the
 * latest: without `expiresAt` at the same time.
 * Throws 422 for an unknown permission or a time that is past or too late, 403 for a permission that the caller does not
 * hold, 409 `limit_reached`, and 401 when the token was revoked in the meantime.
 */
export async function createApiKey(
  deps: ApiKeyDeps,
  db: Database,
  input: { name: string; patterns: readonly string[]; expiresAt: Date | null; caller: Caller; now: Date },
): Promise<{ record: ApiKeyRecord; key: string }> {
  const { name, patterns, caller, now } = input
  checkKeyMay(caller, 'api-key:create')
  checkPatternsKnown(patterns, deps.listPermissions())
  checkMayMakeKey(caller, patterns)
  const isOwnerActive = await lockKeyOwner(db, caller.userId)
  const facts = await readKeyMakerFacts(db, { ...caller, now })
  if (!isOwnerActive || !facts.isTokenLive) throw buildTokenEnded()
  const expiresAt = decideExpiry(input.expiresAt, facts, now)
  checkKeyLimit(facts)
  const key = `sbx_${deps.random.bytes(32).toString('base64url')}`
  const record = await insertApiKey(db, {
    id: deps.ids.next<'api key'>(),
    userId: caller.userId,
    name,
    tokenHash: createHash('sha256').update(key).digest(),
    hint: `${key.slice(0, 8)}…`,
    patterns,
    expiresAt,
    now,
  })
  return { record, key }
}

/** When a new key expires. Pure. Throws a 422 on `expires_at` for a time past, or one after the end of the token. */
function decideExpiry(wanted: Date | null, { tokenExpiresAt }: KeyMakerFacts, now: Date): Date | null {
  if (wanted !== null && wanted <= now)
    throw invalidField('expires_at', 'past', 'must be a time in the future; leave it out for a key without an end')
  if (wanted === null || tokenExpiresAt === null) return wanted ?? tokenExpiresAt
  if (wanted <= tokenExpiresAt) return wanted
  const latest = tokenExpiresAt.toISOString()
  throw invalidField(
    'expires_at',
    'after_maker',
    `must not be after ${latest}, when the key that makes this one expires`,
  )
}

function checkKeyLimit({ liveKeys }: KeyMakerFacts): void {
  if (liveKeys < LIVE_KEYS_LIMIT) return
  const text = `A user has at most ${LIVE_KEYS_LIMIT} API keys that are neither revoked nor expired. Revoke one first.`
  throw new Problem('limit_reached', text)
}

function buildTokenEnded(): Problem {
  return new Problem('unauthenticated', 'The session or API key of this request was revoked while it ran.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/**
 * Ends a key, from the next request on. Throws 403 when the key holds more than the caller, 404 when it was revoked in
 * the meantime.
 */
export async function revokeApiKey(
  db: Database,
  input: { key: ApiKeyRecord; caller: Caller; now: Date },
): Promise<ApiKeyRecord> {
  const { key, caller, now } = input
  await checkMayEndKey(db, caller, key)
  const revoked = await revokeApiKeyRow(db, key.id, now)
  if (!revoked) throw notFound('API key')
  return revoked
}

/** Ends all keys of a user, from the next request on. Returns those that this call ended. */
export function revokeUserApiKeys(db: Database, userId: UserId, now: Date): Promise<ApiKeyId[]> {
  return revokeUserApiKeyRows(db, userId, now)
}
