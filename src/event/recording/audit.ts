import type { AccountId, IdMaker, SessionId, UserId } from '../../base/id.ts'
import { isUuid } from '../../base/id.ts'
import type { PortalVisit } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AuditOutcome, type AuditRecord, insertAuditEntries } from './audit.store.ts'

/** An audit entry: actor, action, target, address and outcome. */
export interface AuditEntry {
  /** `<resource>.<action>`, as in the catalogue of event types. */
  action: string
  outcome: AuditOutcome
  /** The actor, or the user of a refused sign-in; null when unknown. */
  userId: UserId | null
  sessionId?: SessionId | null
  apiKeyId?: string | null
  /** The app that acted for the user. */
  clientId?: string | null
  /** The portal session that acted under the API key. */
  portal?: PortalVisit | null
  account?: AccountId | null
  /** The `document_id` of the changed row. Left out when it is not a UUID, as ids of other services may be. */
  target?: string | null
  address?: string | null
  requestId?: string | null
  /** Details. Never a secret, a token, a password, or other input of a password form. */
  detail?: Record<string, unknown>
}

/** Builds the rows of entries, in the order given. Pure except for the ids. */
export function buildAuditRecords(ids: IdMaker, entries: readonly AuditEntry[], now: Date): AuditRecord[] {
  return entries.map((entry) => ({
    id: ids.next<'audit entry'>(),
    action: entry.action,
    outcome: entry.outcome,
    userId: entry.userId,
    sessionId: entry.sessionId ?? null,
    apiKeyId: entry.apiKeyId ?? null,
    clientId: entry.clientId ?? null,
    portalSession: entry.portal?.id ?? null,
    externalUser: entry.portal?.externalUser ?? null,
    account: entry.account ?? null,
    target: entry.target && isUuid(entry.target) ? entry.target : null,
    address: entry.address ?? null,
    requestId: entry.requestId ?? null,
    detail: entry.detail ?? {},
    createdAt: now,
  }))
}

/** Records entries in the caller's transaction, in the order given. Does nothing for an empty list. */
export async function recordAudit(
  db: Database,
  deps: { ids: IdMaker; now: Date },
  ...entries: readonly AuditEntry[]
): Promise<void> {
  if (entries.length > 0) await insertAuditEntries(db, buildAuditRecords(deps.ids, entries, deps.now))
}
