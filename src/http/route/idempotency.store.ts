import type { AccountId } from '../../base/id.ts'
import { sweepStatement } from '../../postgres/retention.ts'
import { type Database, isLockTimeout, isUniqueViolation } from '../../postgres/statement/database.ts'
import { type Fragment, fragment } from '../../postgres/statement/fragment.ts'
import { changeStatement, rowStatement, testStatement } from '../../postgres/statement/statement.ts'

/** Identifies a request by caller, route and key; `requestHash` detects another request under the same key. */
export interface IdempotencyKey {
  caller: string
  route: string
  key: string
  /** SHA-256 over method, path with its query, and the body's bytes. */
  requestHash: Buffer
}

/** The stored first answer, without the secret that is shown once. */
export interface KeptAnswer {
  status: number
  payload: string
  location: string | undefined
  /** The owner of the changed row. A caller that no longer reaches it does not get the answer again. */
  account: AccountId | null
}

const insertKey = fragment<IdempotencyKey & Omit<KeptAnswer, 'location'> & { location: string | null; now: Date }>(
  'kept answer',
  `insert into idempotency_key (caller, route, key, body_hash, status_code, response, location, account, created_at)
   values ($caller, $route, $key, $requestHash, $status, $payload, $location, $account, $now)`,
)

/** Inserts the key with its answer: fails for one that exists (`isKeyTaken`), waits for one being inserted. */
export function buildKeyInsert(key: IdempotencyKey, answer: KeptAnswer, now: Date): Fragment {
  return insertKey({ ...key, ...answer, location: answer.location ?? null, now })
}

/** Whether `error` reports that the key of the request exists. */
export function isKeyTaken(error: unknown): boolean {
  return isUniqueViolation(error, 'idempotency_key_pkey')
}

/** Whether `error` reports a timeout on the key of the request, which another transaction is inserting. */
export function isKeyAwaited(error: unknown): boolean {
  // The context of the error names the awaited index.
  const { where } = error as { where?: unknown }
  return isLockTimeout(error) && String(where).includes('idempotency_key_pkey')
}

const OF_KEY = 'caller = $caller and route = $route and key = $key'

type KeyRow = Omit<KeptAnswer, 'location'> & { location: string | null; requestHash: Buffer }

const selectKept = rowStatement<KeyRow, IdempotencyKey & { since: Date }>(`
  select body_hash as "requestHash", coalesce(status_code, 200) as status, coalesce(response, '') as payload, location,
    account
  from idempotency_key where ${OF_KEY} and created_at > $since`)

/** The answer under a key that was stored after `since`, with the hash of its request. */
export async function findKeptAnswer(
  db: Database,
  key: IdempotencyKey,
  since: Date,
): Promise<{ answer: KeptAnswer; requestHash: Buffer } | undefined> {
  const row = await selectKept(db, { ...key, since })
  if (!row) return undefined
  const { requestHash, location, ...kept } = row
  return { requestHash, answer: { ...kept, location: location ?? undefined } }
}

/** Whether a database has an answer under the key, expired or not. */
export const hasKeptAnswer = testStatement<IdempotencyKey>(`select from idempotency_key where ${OF_KEY}`)

/** Deletes a key that was stored at or before `before`. */
export const deleteKeptAnswer = changeStatement<IdempotencyKey & { before: Date }>(
  `delete from idempotency_key where ${OF_KEY} and created_at <= $before`,
)

/** Deletes up to `limit` keys created at or before `before`, oldest first; returns their number. For maintenance. */
export const deleteExpiredIdempotencyKeys = sweepStatement(`
  delete from idempotency_key where ctid = any(array(
    select ctid from idempotency_key where created_at <= $before order by created_at limit $limit
    for update skip locked))`)
