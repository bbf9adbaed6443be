import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { AccountId, Id, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { AuditLog } from '../postgres/tables.generated.ts'

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

/** The outcome of the action. */
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
  return db
    .selectFrom('audit_log')
    .select([
      'document_id',
      'action',
      'outcome',
      'user',
      'session',
      'api_key',
      'account',
      'target',
      'address',
      'request_id',
      'detail',
      'created_at',
    ])
}

const AUDIT_COLUMNS = sql`document_id, action, outcome, "user", session, api_key, account, target, address, request_id,
  detail, created_at`

/** The statement that appends entries: one array for each column, so its text does not depend on their number. */
export function buildAuditInsert(entries: readonly AuditRecord[]): RawBuilder<unknown> {
  const [one] = entries
  if (one && entries.length === 1)
    return sql`
      insert into audit_log (${AUDIT_COLUMNS})
      values (${one.id}, ${one.action}, ${one.outcome}, ${one.userId}, ${one.sessionId}, ${one.apiKeyId}, ${one.account},
        ${one.target}, ${one.address}, ${one.requestId}, ${JSON.stringify(one.detail)}, ${one.createdAt})`
  const column = <Value>(pick: (entry: AuditRecord) => Value) => entries.map(pick)
  return sql`
    insert into audit_log (${AUDIT_COLUMNS})
    select * from unnest(
      ${column((each) => each.id)}::uuid[], ${column((each) => each.action)}::text[],
      ${column((each) => each.outcome)}::text[], ${column((each) => each.userId)}::uuid[],
      ${column((each) => each.sessionId)}::uuid[], ${column((each) => each.apiKeyId)}::uuid[],
      ${column((each) => each.account)}::uuid[], ${column((each) => each.target)}::uuid[],
      ${column((each) => each.address)}::text[], ${column((each) => each.requestId)}::text[],
      ${column((each) => JSON.stringify(each.detail))}::jsonb[], ${column((each) => each.createdAt)}::timestamptz[]
    )`
}

/** Appends entries. */
export async function insertAuditEntries(db: Database, entries: readonly AuditRecord[]): Promise<void> {
  await buildAuditInsert(entries).execute(db)
}
