import { type SqlBool, sql } from 'kysely'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'

export const loggedDecision = defineRecord('audit_log', [
  'document_id',
  'user',
  'account',
  'address',
  'request_id',
  'created_at',
])

/** An audit entry of a decision about an app. */
export interface LoggedDecision extends RecordOf<typeof loggedDecision> {
  grant: string | null
  decision: string | null
  /** The scopes that were allowed; null for a refusal. */
  scopes: string[] | null
}

/** The decisions of users about a client, as the base of a list that `audit_log_decision_idx` serves. */
export function selectDecisions(db: Database, client: string) {
  return selectRecord(db.selectFrom('audit_log as l'), loggedDecision, 'l')
    .select([
      // The target of a refusal is the refusal itself.
      sql<string | null>`case when l.detail->>'decision' = 'approve' then l.target end`.as('grant'),
      sql<string | null>`l.detail->>'decision'`.as('decision'),
      sql<string[] | null>`l.detail->'scopes'`.as('scopes'),
    ])
    .where(sql<SqlBool>`l.detail->>'client' = ${client}`)
    .where(sql<SqlBool>`l.action = 'oauth-decision.create'`)
    .where(sql<SqlBool>`l.outcome = 'success'`)
}
