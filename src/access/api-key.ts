import { createHash } from 'node:crypto'
import { type Caller, findPermissionScope, matchesPattern } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { IdMaker, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { type ApiKeyRecord, findApiKey, insertApiKey, revokeApiKeyRow, revokeUserApiKeyRows } from './api-key.store.ts'
import { checkPatternsKnown, coversPattern } from './pattern.ts'

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
 * Makes a key for the caller (D14): `sbx_` and 32 random bytes, returned once and kept as a hash. It holds a subset of what
 * the caller holds now, and at each use no more than what the caller holds then.
 * Throws 422 for an unknown permission or a time past, 403 for a permission that the caller does not hold.
 */
export async function createApiKey(
  deps: ApiKeyDeps,
  db: Database,
  input: { name: string; patterns: readonly string[]; expiresAt: Date | null; caller: Caller; now: Date },
): Promise<{ record: ApiKeyRecord; key: string }> {
  const { name, patterns, expiresAt, caller, now } = input
  checkKeyMay(caller, 'api-key:create')
  checkPatternsKnown(patterns, deps.listPermissions())
  // Negated, since a second that the calendar does not have reads as no time at all.
  if (expiresAt !== null && !(expiresAt > now))
    throw invalidField('expires_at', 'past', 'must be a time in the future; leave it out for a key without an end')
  checkSubset(caller, patterns)
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

/** What holds for the own accounts only may go into a key too: it holds there, and no further. */
function checkSubset(caller: Caller, patterns: readonly string[]): void {
  const covers = (held: readonly string[], pattern: string) => held.some((one) => coversPattern(one, pattern))
  const missing = patterns.find(
    (pattern) =>
      !covers([...caller.patterns, ...caller.accountPatterns], pattern) ||
      (caller.keyPatterns !== null && !covers(caller.keyPatterns, pattern)),
  )
  if (missing === undefined) return
  throw new Problem('permission_denied', `A key cannot hold ${missing}, which you do not hold yourself.`)
}

/** Ends a key, with the next request of whoever holds it. Throws 404 when somebody else has just done so. */
export async function revokeApiKey(db: Database, key: ApiKeyRecord, now: Date): Promise<ApiKeyRecord> {
  const revoked = await revokeApiKeyRow(db, key.id, now)
  if (!revoked) throw notFound('API key')
  return revoked
}

/** Ends all keys of a user. */
export function revokeUserApiKeys(db: Database, userId: UserId, now: Date): Promise<void> {
  return revokeUserApiKeyRows(db, userId, now)
}
