import type { Selectable } from 'kysely'
import type { AccountId, Id, SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { compileFragment, type Fragment, listArrays, listNames, listPlaces, transpose } from '../postgres/fragment.ts'
import { deletionOfOld } from '../postgres/retention.ts'
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
  clientId: string | null
  account: AccountId | null
  target: string | null
  address: string | null
  requestId: string | null
  detail: Record<string, unknown>
  /** How many equal entries of its minute it stands for. Default 1. */
  count?: number
  createdAt: Date
}

/** The outcome of the action. */
export type AuditOutcome = 'success' | 'failure'

/** Maps a row of the `audit_log` table. */
export function toAuditRecord(row: Omit<Selectable<AuditLog>, 'equal_key'>): AuditRecord {
  return {
    id: row.document_id as AuditEntryId,
    action: row.action,
    outcome: row.outcome as AuditOutcome,
    userId: row.user as UserId | null,
    sessionId: row.session as SessionId | null,
    apiKeyId: row.api_key,
    clientId: row.client_id,
    account: row.account as AccountId | null,
    target: row.target,
    address: row.address,
    requestId: row.request_id,
    detail: row.detail as Record<string, unknown>,
    count: row.count,
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
      'client_id',
      'account',
      'target',
      'address',
      'request_id',
      'detail',
      'count',
      'created_at',
    ])
}

/** The columns of an entry, with their types. */
export const AUDIT_COLUMNS = [
  ['document_id', 'uuid'],
  ['action', 'text'],
  ['outcome', 'text'],
  ['"user"', 'uuid'],
  ['session', 'uuid'],
  ['api_key', 'uuid'],
  ['client_id', 'text'],
  ['account', 'uuid'],
  ['target', 'uuid'],
  ['address', 'text'],
  ['request_id', 'text'],
  ['detail', 'jsonb'],
  ['created_at', 'timestamptz'],
] as const

/** The values of an entry, in the order of `AUDIT_COLUMNS`. */
export function toAuditValues(entry: AuditRecord): unknown[] {
  return [
    entry.id,
    entry.action,
    entry.outcome,
    entry.userId,
    entry.sessionId,
    entry.apiKeyId,
    entry.clientId,
    entry.account,
    entry.target,
    entry.address,
    entry.requestId,
    JSON.stringify(entry.detail),
    entry.createdAt,
  ]
}

const INTO_AUDIT = `insert into audit_log (${listNames(AUDIT_COLUMNS)})`
const INSERT_ONE = `${INTO_AUDIT} values (${listPlaces(AUDIT_COLUMNS)})`
const INSERT_SEVERAL = `${INTO_AUDIT} select * from unnest(${listArrays(AUDIT_COLUMNS)})`

/** The statement that appends entries. Several are passed as one array for each column, whatever their number. */
export function buildAuditInsert(entries: readonly AuditRecord[]): Fragment {
  const [one] = entries
  if (one && entries.length === 1) return { name: 'audit entry', text: INSERT_ONE, values: toAuditValues(one) }
  return { name: 'audit entries', text: INSERT_SEVERAL, values: transpose(AUDIT_COLUMNS, entries.map(toAuditValues)) }
}

/** Appends entries. */
export async function insertAuditEntries(db: Database, entries: readonly AuditRecord[]): Promise<void> {
  await db.executeQuery(compileFragment(buildAuditInsert(entries)))
}

/** Deletes up to `limit` entries from before `before`, the oldest first. Returns how many went. */
export const deleteOldAuditEntries = deletionOfOld('audit_log', { key: 'document_id', time: 'created_at' })
