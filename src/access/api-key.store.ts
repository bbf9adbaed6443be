import type { Selectable } from 'kysely'
import type { Id, UserId } from '../id.ts'
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

/** Revokes all keys of a user. */
export async function revokeUserApiKeyRows(db: Database, userId: UserId, now: Date): Promise<void> {
  await db
    .updateTable('api_key')
    .set({ revoked_at: now, updated_at: now })
    .where('user', '=', userId)
    .where('revoked_at', 'is', null)
    .execute()
}
