import type { Selectable } from 'kysely'
import type { AccountId, Id, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { compileFragment, type Fragment } from '../postgres/fragment.ts'
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

const INTO_AUDIT = `
  insert into audit_log (document_id, action, outcome, "user", session, api_key, account, target, address, request_id,
    detail, created_at)`

/** The statement that appends entries. Several are passed as one array for each column, whatever their number. */
export function buildAuditInsert(entries: readonly AuditRecord[]): Fragment {
  const [one] = entries
  if (one && entries.length === 1)
    return {
      name: 'audit entry',
      text: `${INTO_AUDIT} values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      values: [
        one.id,
        one.action,
        one.outcome,
        one.userId,
        one.sessionId,
        one.apiKeyId,
        one.account,
        one.target,
        one.address,
        one.requestId,
        JSON.stringify(one.detail),
        one.createdAt,
      ],
    }
  const column = <Value>(pick: (entry: AuditRecord) => Value) => entries.map(pick)
  return {
    name: 'audit entries',
    text: `${INTO_AUDIT}
      select * from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::uuid[],
        $9::text[], $10::text[], $11::jsonb[], $12::timestamptz[])`,
    values: [
      column((each) => each.id),
      column((each) => each.action),
      column((each) => each.outcome),
      column((each) => each.userId),
      column((each) => each.sessionId),
      column((each) => each.apiKeyId),
      column((each) => each.account),
      column((each) => each.target),
      column((each) => each.address),
      column((each) => each.requestId),
      column((each) => JSON.stringify(each.detail)),
      column((each) => each.createdAt),
    ],
  }
}

/** Appends entries. */
export async function insertAuditEntries(db: Database, entries: readonly AuditRecord[]): Promise<void> {
  await db.executeQuery(compileFragment(buildAuditInsert(entries)))
}
