import type { Selectable } from 'kysely'
import type { AccountId, Id, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { AuditLog, JsonObject } from '../postgres/tables.generated.ts'

export type AuditEntryId = Id<'audit entry'>

/** A row of the `audit_log` table. */
export interface AuditRecord {
  id: AuditEntryId
  action: string
  outcome: AuditOutcome
  userId: UserId | null
  sessionId: SessionId | null
  apiKeyId: string | null
  account: AccountId | null
  target: string | null
  address: string | null
  requestId: string | null
  detail: Record<string, unknown>
  createdAt: Date
}

/** How what was asked for ended. */
export type AuditOutcome = 'success' | 'failure'

/** Maps a row of the `audit_log` table. */
export function toAuditRecord(row: Selectable<AuditLog>): AuditRecord {
  return {
    id: row.document_id as AuditEntryId,
    action: row.action,
    outcome: row.outcome as AuditOutcome,
    userId: row.user as UserId | null,
    sessionId: row.session as SessionId | null,
    apiKeyId: row.api_key,
    account: row.account as AccountId | null,
    target: row.target,
    address: row.address,
    requestId: row.request_id,
    detail: row.detail as Record<string, unknown>,
    createdAt: row.created_at,
  }
}

/** All entries, as the base of a list. */
export function selectAuditEntries(db: Database) {
  return db.selectFrom('audit_log')
}

/** Appends entries. */
export async function insertAuditEntries(db: Database, entries: readonly AuditRecord[]): Promise<void> {
  const rows = entries.map((entry) => ({
    document_id: entry.id,
    action: entry.action,
    outcome: entry.outcome,
    user: entry.userId,
    session: entry.sessionId,
    api_key: entry.apiKeyId,
    account: entry.account,
    target: entry.target,
    address: entry.address,
    request_id: entry.requestId,
    detail: JSON.stringify(entry.detail) as unknown as JsonObject,
    created_at: entry.createdAt,
  }))
  await db.insertInto('audit_log').values(rows).execute()
}
