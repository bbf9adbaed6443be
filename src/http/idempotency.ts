import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { sql } from 'kysely'
import type { AccountId } from '../id.ts'
import { type Database, isLockTimeout, isUniqueViolation } from '../postgres/database.ts'
import type { Fragment } from '../postgres/fragment.ts'
import type { Answer } from './answer.ts'
import { type Caller, includesAccount } from './caller.ts'
import { notFound, Problem } from './problem.ts'
import { operationIdOf, type RequestFacts, type RouteDeclaration } from './route.ts'

/** Lifetime of a key (docs/contract/api.md#idempotency). */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000

const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/

/** Identifies a request by caller, route and key; `requestHash` detects another request under the same key. */
export interface IdempotencyKey {
  caller: string
  route: string
  key: string
  /** SHA-256 over method, path with its query, and the body's bytes. */
  requestHash: Buffer
}

/** The first answer as it is stored: without the secret that is shown once. */
export interface KeptAnswer {
  status: number
  payload: string
  location: string | undefined
  /** The owner of the changed row. A caller that no longer reaches it does not get the answer again. */
  account: AccountId | null
}

/**
 * Reads the `Idempotency-Key` of a change; undefined when it has none, or when its answer is a credential (the strict
 * routes), which is never kept. The ids of the path are part of the request: the same key on another row is another
 * request and is refused. Throws 400 `malformed_request`.
 */
export function readIdempotencyKey(request: FastifyRequest, route: RouteDeclaration): IdempotencyKey | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined || route.strictRateLimit || route.page) return undefined
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new Problem('malformed_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters, without spaces.')
  }
  const body = request.rawBody ?? JSON.stringify(request.body ?? null)
  const requestHash = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest()
  const caller = request.caller ? describeCaller(request.caller) : `public:${request.ip}`
  return { caller, route: operationIdOf(route), key, requestHash }
}

/** The namespace of a caller's keys: the user for all sessions of a user, the API key for an API key. */
function describeCaller(caller: Caller): string {
  return caller.apiKeyId ? `api-key:${caller.apiKeyId}` : `user:${caller.userId}`
}

/**
 * The statement that inserts the key with its answer. It fails for a key that exists (`isKeyTaken`), and waits for an
 * uncommitted transaction that inserts the same key.
 */
export function buildKeyInsert(key: IdempotencyKey, answer: KeptAnswer, now: Date): Fragment {
  const { caller, route, requestHash } = key
  const { status, payload, location = null, account } = answer
  return {
    name: 'kept answer',
    text: `
      insert into idempotency_key (caller, route, key, body_hash, status_code, response, location, account, created_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    values: [caller, route, key.key, requestHash, status, payload, location, account, now],
  }
}

/** Whether `error` reports that the key of the request exists. */
export function isKeyTaken(error: unknown): boolean {
  return isUniqueViolation(error, 'idempotency_key_pkey')
}

/** Whether `error` reports that the key of the request was waited for too long: another transaction inserts it. */
export function isKeyAwaited(error: unknown): boolean {
  // The context of the error names the index that waits.
  const { where } = error as { where?: unknown }
  return isLockTimeout(error) && String(where).includes('idempotency_key_pkey')
}

/** 409 for a request that waited too long for the first one with its key. */
export function buildInProgress(): Problem {
  const detail =
    'The first request with this Idempotency-Key is still running. Send the same request again in a few seconds.'
  return new Problem('idempotency_in_progress', detail, { headers: { 'retry-after': '5' } })
}

/**
 * The answer that is stored under the key; undefined when there is none, or when its 24 hours are over.
 * Throws 422 `idempotency_key_reused` for another request, 404 when the caller no longer reaches the changed row.
 */
export async function findAnswer(
  db: Database,
  key: IdempotencyKey,
  asked: { route: RouteDeclaration; facts: Pick<RequestFacts<unknown, unknown, unknown>, 'scope' | 'now'> },
): Promise<KeptAnswer | undefined> {
  const { route, facts } = asked
  const earlier = await db
    .selectFrom('idempotency_key')
    .select(['body_hash', 'status_code', 'response', 'location', 'account'])
    .where('caller', '=', key.caller)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .where('created_at', '>', new Date(facts.now.getTime() - IDEMPOTENCY_KEPT_MS))
    .executeTakeFirst()
  if (!earlier) return undefined
  if (!earlier.body_hash.equals(key.requestHash)) {
    const detail =
      'This Idempotency-Key was used with another path or body within 24 hours. Send a new key with a new request.'
    throw new Problem('idempotency_key_reused', detail)
  }
  const account = earlier.account as AccountId | null
  if (route.ownAccounts && !includesAccount(facts.scope, account)) throw notFound(route.resource)
  return {
    status: earlier.status_code ?? 200,
    payload: earlier.response ?? '',
    location: earlier.location ?? undefined,
    account,
  }
}

/** The first answer, as it answers a repeat. */
export function buildRepeatedAnswer(kept: KeptAnswer): Answer {
  return {
    status: kept.status,
    contentType: 'application/json; charset=utf-8',
    payload: kept.payload,
    headers: { 'idempotency-replayed': 'true', ...(kept.location && { location: kept.location }) },
    cookies: [],
  }
}

/** Deletes a key whose 24 hours are over and that maintenance has not removed yet. */
export async function deleteExpiredAnswer(db: Database, key: IdempotencyKey, now: Date): Promise<void> {
  await db
    .deleteFrom('idempotency_key')
    .where('caller', '=', key.caller)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .where('created_at', '<=', new Date(now.getTime() - IDEMPOTENCY_KEPT_MS))
    .execute()
}

/** Deletes up to `limit` keys created at or before `before`, oldest first; returns their number. For maintenance. */
export async function deleteExpiredIdempotencyKeys(db: Database, before: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from idempotency_key where ctid in (
      select ctid from idempotency_key where created_at <= ${before} order by created_at limit ${limit}
      for update skip locked
    ) returning 1`.execute(db)
  return rows.length
}
