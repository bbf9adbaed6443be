import { type Selectable, sql } from 'kysely'
import type { Id, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { ApiKey } from '../postgres/tables.generated.ts'

export type ApiKeyId = Id<'api key'>

/** A row of the `api_key` table. The key itself is not kept, only its hash. */
export interface ApiKeyRecord {
  id: ApiKeyId
  userId: UserId
  name: string
  /** The beginning of the key, to tell one from another. */
  hint: string
  patterns: string[]
  expiresAt: Date | null
  lastUsedAt: Date | null
  revokedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** Maps a row of the `api_key` table. */
export function toApiKeyRecord(row: Selectable<ApiKey>): ApiKeyRecord {
  return {
    id: row.document_id as ApiKeyId,
    userId: row.user as UserId,
    name: row.name,
    hint: row.hint,
    patterns: row.permissions,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The unrevoked keys, as the base of a list: of one user, or of all. */
export function selectApiKeys(db: Database, owner: UserId | 'all') {
  const unrevoked = db.selectFrom('api_key').where('revoked_at', 'is', null)
  return owner === 'all' ? unrevoked : unrevoked.where('user', '=', owner)
}

/** The unrevoked key with this id. */
export async function findApiKey(db: Database, id: string): Promise<ApiKeyRecord | undefined> {
  const row = await db
    .selectFrom('api_key')
    .selectAll()
    .where('document_id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return row && toApiKeyRecord(row)
}

/** Inserts a key. */
export async function insertApiKey(
  db: Database,
  row: {
    id: ApiKeyId
    userId: UserId
    name: string
    tokenHash: Buffer
    hint: string
    patterns: readonly string[]
    expiresAt: Date | null
    now: Date
  },
): Promise<ApiKeyRecord> {
  const inserted = await db
    .insertInto('api_key')
    .values({
      document_id: row.id,
      user: row.userId,
      name: row.name,
      token_hash: row.tokenHash,
      hint: row.hint,
      permissions: [...row.patterns],
      expires_at: row.expiresAt,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toApiKeyRecord(inserted)
}

/** Revokes a key. Undefined when it was revoked meanwhile. */
export async function revokeApiKeyRow(db: Database, id: ApiKeyId, now: Date): Promise<ApiKeyRecord | undefined> {
  const row = await db
    .updateTable('api_key')
    .set({ revoked_at: now, updated_at: now })
    .where('document_id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  return row && toApiKeyRecord(row)
}

/** Revokes all keys of a user. Returns those that this call ended. */
export async function revokeUserApiKeyRows(db: Database, userId: UserId, now: Date): Promise<ApiKeyId[]> {
  const rows = await db
    .updateTable('api_key')
    .set({ revoked_at: now, updated_at: now })
    .where('user', '=', userId)
    .where('revoked_at', 'is', null)
    .returning('document_id')
    .execute()
  return rows.map((row) => row.document_id as ApiKeyId)
}

/**
 * Locks the user until the transaction ends, so that the keys of one user are made one after the other, and not while
 * another transaction ends keys and sessions of the user. False when the user is disabled or deleted.
 */
export async function lockKeyOwner(db: Database, userId: UserId): Promise<boolean> {
  const row = await db
    .selectFrom('user')
    .select('document_id')
    .where('document_id', '=', userId)
    .where('is_actived', '=', true)
    .where('deleted_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** What decides whether a token may make a key. */
export interface KeyMakerFacts {
  /** Whether the session or key of the token is unrevoked and unexpired. */
  isTokenLive: boolean
  /** When the key of the token expires; null for a session and for a key without an end. */
  tokenExpiresAt: Date | null
  /** The user's keys that are unrevoked and unexpired. */
  liveKeys: number
}

/** Reads what decides whether a token may make a key, in one statement. */
export async function readKeyMakerFacts(
  db: Database,
  token: { userId: UserId; sessionId: SessionId | null; apiKeyId: string | null; now: Date },
): Promise<KeyMakerFacts> {
  const { userId, sessionId, apiKeyId, now } = token
  const { rows } = await sql<{ session: boolean; key: boolean; expires_at: Date | null; live: number }>`
    select
      exists (select from session s where s.document_id = ${sessionId} and s.revoked_at is null
        and s.expires_at > ${now}) as session,
      coalesce(bool_or(k.document_id = ${apiKeyId}), false) as key,
      max(k.expires_at) filter (where k.document_id = ${apiKeyId}) as expires_at,
      count(k.document_id)::int as live
    from api_key k
    where k."user" = ${userId} and k.revoked_at is null and (k.expires_at is null or k.expires_at > ${now})`.execute(db)
  const [row] = rows
  return {
    isTokenLive: (row?.session ?? false) || (row?.key ?? false),
    tokenExpiresAt: row?.expires_at ?? null,
    liveKeys: row?.live ?? 0,
  }
}
