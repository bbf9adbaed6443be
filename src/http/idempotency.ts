import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { type NotNull, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import type { JsonValue } from '../postgres/tables.generated.ts'
import { Problem } from './problem.ts'
import { operationIdOf, type RouteDeclaration } from './route.ts'

/** How long a key is remembered (D7). */
export const IDEMPOTENCY_KEPT_MS = 24 * 3_600_000

/** How long a request waits for the one that holds its key, before it is told to come back. */
const WAIT_FOR_FIRST_MS = 5_000

const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/

/** What makes two requests the same: caller, route and key say which; `requestHash` says whether they ask the same. */
export interface IdempotencyKey {
  caller: string
  route: string
  key: string
  /** SHA-256 over method, path with its query, and the body's bytes. */
  requestHash: Buffer
}

/** The first answer as it is kept: never with a secret that is shown once. */
export interface StoredAnswer {
  status: number
  body: unknown
  location: string | undefined
}

/**
 * Reads the `Idempotency-Key` of a request (D7); undefined when it has none, or when its answer is a credential:
 * sign-in, exchange, refresh and handshake (the strict routes of D8) are never kept, so they take no key.
 * The path's ids are part of the request: the same key on another row is "another request", not a separate one, because
 * whoever reuses a key by mistake wants to hear of it. Throws 400 `malformed_request`.
 */
export function readIdempotencyKey(request: FastifyRequest, route: RouteDeclaration): IdempotencyKey | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined || route.strictRateLimit) return undefined
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new Problem('malformed_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters, without spaces.')
  }
  const body = request.rawBody ?? JSON.stringify(request.body ?? null)
  const requestHash = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest()
  return { caller: describeCaller(request), route: operationIdOf(route), key, requestHash }
}

/** A person keeps their keys over sign-ins; an API key has its own, since each is another program. */
function describeCaller({ caller, ip }: FastifyRequest): string {
  if (!caller) return `public:${ip}`
  return caller.apiKeyId ? `api-key:${caller.apiKeyId}` : `user:${caller.userId}`
}

/**
 * Takes the key inside the transaction of the change, or finds the answer of the request that took it before. A second
 * request at the same time waits until the first one commits, then gets its answer; when the first one fails, its row
 * goes with it and the second one is the first. Undefined means: go on, the key is yours.
 * Throws 422 `idempotency_key_reused` for another request, 409 `idempotency_in_progress` when the first takes too long.
 */
export async function findIdempotentAnswer(
  tx: Database,
  key: IdempotencyKey,
  now: Date,
): Promise<StoredAnswer | undefined> {
  if (await takeKey(tx, key, now)) return undefined
  const earlier = await tx
    .selectFrom('idempotency_key')
    .select(['body_hash', 'status_code', 'response', 'location'])
    .where('caller', '=', key.caller)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    // Committed, hence answered; and locked since takeKey met it, hence not removed meanwhile.
    .$narrowType<{ status_code: NotNull }>()
    .executeTakeFirstOrThrow()
  if (!earlier.body_hash.equals(key.requestHash)) {
    const detail =
      'This Idempotency-Key was used with another path or body within 24 hours. Make a new key for a new request.'
    throw new Problem('idempotency_key_reused', detail)
  }
  return { status: earlier.status_code, body: earlier.response, location: earlier.location ?? undefined }
}

/** Inserts the row of the key, or takes over one whose day is over. Waits for a transaction that holds it. */
async function takeKey(tx: Database, key: IdempotencyKey, now: Date): Promise<boolean> {
  const expiredAt = new Date(now.getTime() - IDEMPOTENCY_KEPT_MS)
  await sql`select set_config('lock_timeout', ${`${WAIT_FOR_FIRST_MS}`}, true)`.execute(tx)
  try {
    const taken = await tx
      .insertInto('idempotency_key')
      .values({ caller: key.caller, route: key.route, key: key.key, body_hash: key.requestHash, created_at: now })
      .onConflict((conflict) =>
        conflict
          .columns(['caller', 'route', 'key'])
          .doUpdateSet({
            body_hash: key.requestHash,
            status_code: null,
            response: null,
            location: null,
            created_at: now,
          })
          .where('idempotency_key.created_at', '<=', expiredAt),
      )
      .returning('key')
      .executeTakeFirst()
    // The limit was for this wait only; the operation's own waits follow the database's rule again.
    await sql`select set_config('lock_timeout', '0', true)`.execute(tx)
    return taken !== undefined
  } catch (error) {
    if ((error as { code?: unknown }).code === '55P03') throw buildInProgress()
    throw error
  }
}

function buildInProgress(): Problem {
  const detail = 'The first request with this Idempotency-Key still runs. Send the same request again in a few seconds.'
  return new Problem('idempotency_in_progress', detail, { headers: { 'retry-after': '5' } })
}

/** Keeps the first answer beside its key, in the same transaction: the change and its answer stand or fall together. */
export async function storeIdempotentAnswer(tx: Database, key: IdempotencyKey, answer: StoredAnswer): Promise<void> {
  await tx
    .updateTable('idempotency_key')
    .set({
      status_code: answer.status,
      response: sql<JsonValue>`${JSON.stringify(answer.body)}::jsonb`,
      location: answer.location ?? null,
    })
    .where('caller', '=', key.caller)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .execute()
}

/** Removes up to `limit` keys made at or before `before`, oldest first; answers how many. For maintenance. */
export async function deleteExpiredIdempotencyKeys(db: Database, before: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from idempotency_key where ctid in (
      select ctid from idempotency_key where created_at <= ${before} order by created_at limit ${limit}
      for update skip locked
    ) returning 1`.execute(db)
  return rows.length
}
