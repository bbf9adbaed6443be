import { type AccountId, isUuid, type PortalSessionId, type SessionId, type UserId } from '../../base/id.ts'
import { type BuildParts, buildPart } from '../../http/listing/page.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { compileFragment, type Fragment, insertOf } from '../../postgres/statement/fragment.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { valueStatement } from '../../postgres/statement/statement.ts'

export type AuditOutcome = 'success' | 'failure'

/** An entry of the audit log. */
export const auditEntry = defineRecord(
  'audit_log',
  [
    'document_id',
    'action',
    'outcome',
    'user',
    'session',
    'api_key',
    'client_id',
    'portal_session',
    'external_user',
    'account',
    'target',
    'address',
    'request_id',
    'detail',
    'count',
    'created_at',
  ],
  { user: 'userId', session: 'sessionId', api_key: 'apiKeyId' },
).typed<{
  outcome: AuditOutcome
  userId: UserId | null
  sessionId: SessionId | null
  portalSession: PortalSessionId | null
  account: AccountId | null
  detail: Record<string, unknown>
}>()
export type ListedEntry = RecordOf<typeof auditEntry>

/** An entry to record: `count` is the number of equal entries of its minute, 1 by default. */
export type AuditRecord = Omit<ListedEntry, 'count'> & { count?: number }

/** All entries, as the base of a list. Those of most publications are in the rows of their events. */
export function listAuditEntries(db: Database): { scope: 'all'; parts: BuildParts<ListedEntry> } {
  const entries = selectRecord(db.selectFrom('audit_log'), auditEntry)
  const publications = selectRecord(db.selectFrom('audit_publication'), auditEntry)
  return { scope: 'all', parts: () => [buildPart(entries), buildPart(publications)] }
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
  ['portal_session', 'uuid'],
  ['external_user', 'text'],
  ['account', 'uuid'],
  ['target', 'uuid'],
  ['address', 'text'],
  ['request_id', 'text'],
  ['detail', 'jsonb'],
  ['created_at', 'timestamptz'],
] as const

const MEMBERS = AUDIT_COLUMNS.map(
  ([name]) => auditEntry.memberOf(name === '"user"' ? 'user' : name) as keyof AuditRecord,
)

/** The values of an entry, in the order of `AUDIT_COLUMNS`. */
export function toAuditValues(entry: AuditRecord): unknown[] {
  const written = { ...entry, detail: JSON.stringify(entry.detail) }
  return MEMBERS.map((member) => written[member])
}

const insert = insertOf('audit_log', AUDIT_COLUMNS)

/** The statement that appends entries. */
export const buildAuditInsert = (entries: readonly AuditRecord[]): Fragment => insert(entries.map(toAuditValues))

/** Appends entries. */
export async function insertAuditEntries(db: Database, entries: readonly AuditRecord[]): Promise<void> {
  await db.executeQuery(compileFragment(buildAuditInsert(entries)))
}

/** Deletes up to `limit` entries of `audit_log` from before `before`, the oldest first. Returns their number. */
export const deleteOldAuditEntries = deletionOfOld('audit_log', { key: 'document_id', time: 'created_at' })

/** The columns of an event's row that hold the entry of its publication, with their types. */
export const PUBLICATION_COLUMNS = [
  ['published_by', 'uuid'],
  ['publish_session', 'uuid'],
  ['publish_api_key', 'uuid'],
  ['publish_request', 'uuid'],
  ['publish_client', 'text'],
  ['publish_address', 'text'],
  ['publish_detail', 'jsonb'],
] as const

/** Whether the row of an event can store an entry: it lacks columns that the entry of a publication never uses. */
export function isOfPublication(entry: AuditRecord): boolean {
  const isPlain =
    entry.account === null && entry.portalSession === null && entry.target === null && (entry.count ?? 1) === 1
  const isSuccess = entry.action === 'event.publish' && entry.outcome === 'success'
  return isPlain && isSuccess && entry.requestId !== null && isUuid(entry.requestId)
}

const ONE_EVENT = JSON.stringify({ events: 1 })

/** The values of `PUBLICATION_COLUMNS`, in their order; nulls for an event without an entry. */
export function toPublicationValues(entry: AuditRecord | undefined): unknown[] {
  if (!entry) return PUBLICATION_COLUMNS.map(() => null)
  const detail = JSON.stringify(entry.detail)
  return [
    entry.userId,
    entry.sessionId,
    entry.apiKeyId,
    entry.requestId,
    entry.clientId,
    entry.address,
    detail === ONE_EVENT ? null : detail,
  ]
}

/** Clears up to `limit` entries from before `before` in events that are kept longer. Returns their number. */
export const clearOldPublicationEntries = valueStatement<number, { before: Date; limit: number }>(`
  with cleared as (
    update event_occurrence set ${PUBLICATION_COLUMNS.map(([name]) => `${name} = null`).join(', ')}
    where document_id = any(array(
      select document_id from event_occurrence where publish_request is not null and created_at < $before
      order by created_at limit $limit for update skip locked))
    returning 1
  )
  select count(*)::int as cleared from cleared`)
