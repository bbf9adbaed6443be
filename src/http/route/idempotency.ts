import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Database } from '../../postgres/statement/database.ts'
import { notFound, Problem } from '../problem/problem.ts'
import { type Caller, includesAccount } from '../shape/caller.ts'
import type { Answer } from './answer.ts'
import { deleteKeptAnswer, findKeptAnswer, type IdempotencyKey, type KeptAnswer } from './idempotency.store.ts'
import { isChange, operationIdOf, type RequestFacts, type RouteDeclaration } from './route.ts'

/** Lifetime of a key (docs/contract/api.md#idempotency). */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000

const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/

/**
 * Whether a route takes an `Idempotency-Key`. The answers of strict routes are credentials, which are not stored. A
 * public route has no caller to own a key: a repeat would get an answer without proof of any right to it.
 */
export function takesIdempotencyKey(route: RouteDeclaration): boolean {
  return isChange(route) && route.access !== 'public' && !route.strictRateLimit && !route.page
}

/**
 * Reads the `Idempotency-Key` of a change; undefined when it has none, or on a route that takes none. The ids of the path
 * are part of the request: the same key on another row is another request and is refused. Throws 400 `malformed_request`.
 */
export function readIdempotencyKey(request: FastifyRequest, route: RouteDeclaration): IdempotencyKey | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined || !request.caller || !takesIdempotencyKey(route)) return undefined
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new Problem('malformed_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters, without spaces.')
  }
  const body = request.rawBody ?? JSON.stringify(request.body ?? null)
  const requestHash = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest()
  const reachesAll = route.opensAll === true && request.scope === 'all'
  return { caller: describeCaller(request.caller, reachesAll), route: operationIdOf(route), key, requestHash }
}

/**
 * The namespace of a caller's keys: the user for all sessions of a user, the API key for an API key, the portal session
 * for a visit of the portal. Keys of a request that reaches the rows of all users have one of their own: a caller who
 * lost that permission does not get their answers.
 */
function describeCaller(caller: Caller, reachesAll: boolean): string {
  const name = caller.portal ? `portal:${caller.portal.id}` : nameToken(caller)
  return reachesAll ? `${name}:all` : name
}

const nameToken = ({ apiKeyId, userId }: Caller) => (apiKeyId ? `api-key:${apiKeyId}` : `user:${userId}`)

/** 409 for a request that waited too long for the first one with its key. */
export function buildInProgress(): Problem {
  const detail =
    'The first request with this Idempotency-Key is still running. Send the same request again in a few seconds.'
  return new Problem('idempotency_in_progress', detail, { headers: { 'retry-after': '5' } })
}

/** Keys that were stored at or before this instant have expired. */
function findExpiry(now: Date): Date {
  return new Date(now.getTime() - IDEMPOTENCY_KEPT_MS)
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
  const kept = await findKeptAnswer(db, key, findExpiry(facts.now))
  if (!kept) return undefined
  if (!kept.requestHash.equals(key.requestHash)) {
    const detail =
      'This Idempotency-Key was used with another path or body within 24 hours. Send a new key with a new request.'
    throw new Problem('idempotency_key_reused', detail)
  }
  if (route.ownAccounts && !includesAccount(facts.scope, kept.answer.account)) throw notFound(route.resource)
  return kept.answer
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
  await deleteKeptAnswer(db, { ...key, before: findExpiry(now) })
}
