import { type SqlBool, sql } from 'kysely'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'

export const signIn = defineRecord('audit_log', [
  'document_id',
  'action',
  'session',
  'address',
  'request_id',
  'count',
  'created_at',
])

/** An audit entry of a sign-in. */
export interface SignIn extends RecordOf<typeof signIn> {
  outcome: string
  reason: string | null
  provider: string | null
}

/** The sign-ins of a user in the audit log, as the base of a list. In this form of the condition `audit_log_sign_in_idx` serves it. */
export function selectSignIns(db: Database, userId: string) {
  return selectRecord(db.selectFrom('audit_log as l'), signIn, 'l')
    .select([
      'l.outcome',
      sql<string | null>`l.detail->>'reason'`.as('reason'),
      sql<string | null>`l.detail->>'provider'`.as('provider'),
    ])
    .where('l.user', '=', userId)
    .where(sql<SqlBool>`starts_with(l.action, 'login.')`)
}
