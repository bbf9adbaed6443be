import type { AccountId, IdMaker, SessionId, UserId } from '../id.ts'
import { isUuid } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type AuditOutcome, type AuditRecord, insertAuditEntries } from './audit.store.ts'

/** Something worth remembering: who did what to what, from where, and how it ended. */
export interface AuditEntry {
  /** `<resource>.<action>`, as in the catalogue of event types. */
  action: string
  outcome: AuditOutcome
  /** Who did it, or whom a refused sign-in named; null when nobody is known. */
  userId: UserId | null
  sessionId?: SessionId | null
  apiKeyId?: string | null
  account?: AccountId | null
  /** The `document_id` of what was changed. Left out when it is no UUID, which outside ids may be. */
  target?: string | null
  address?: string | null
  requestId?: string | null
  /** More to know. Never a secret, a token, a password, or what somebody typed into a password form. */
  detail?: Record<string, unknown>
}

/** Entries as they are stored, in the order given. Pure but for the ids. */
export function buildAuditRecords(ids: IdMaker, entries: readonly AuditEntry[], now: Date): AuditRecord[] {
  return entries.map((entry) => ({
    id: ids.next<'audit entry'>(),
    action: entry.action,
    outcome: entry.outcome,
    userId: entry.userId,
    sessionId: entry.sessionId ?? null,
    apiKeyId: entry.apiKeyId ?? null,
    account: entry.account ?? null,
    target: entry.target && isUuid(entry.target) ? entry.target : null,
    address: entry.address ?? null,
    requestId: entry.requestId ?? null,
    detail: entry.detail ?? {},
    createdAt: now,
  }))
}

/** Records entries in the caller's transaction, in the order given. Does nothing for none. */
export async function recordAudit(
  db: Database,
  deps: { ids: IdMaker; now: Date },
  ...entries: readonly AuditEntry[]
): Promise<void> {
  if (entries.length > 0) await insertAuditEntries(db, buildAuditRecords(deps.ids, entries, deps.now))
}
