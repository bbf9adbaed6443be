import { type SqlBool, sql } from 'kysely'
import type { Database } from '../../postgres/statement/database.ts'

/** An audit entry of a sign-in. */
export interface SignInColumns {
  document_id: string
  action: string
  outcome: string
  session: string | null
  client_id: string | null
  address: string | null
  request_id: string | null
  count: number
  created_at: Date
  reason: string | null
  provider: string | null
}

/** The sign-ins of a user in the audit log, as the base of a list. In this form of the condition `audit_log_sign_in_idx` serves it. */
export function selectSignIns(db: Database, userId: string) {
  return db
    .selectFrom('audit_log as l')
    .select([
      'l.document_id',
      'l.action',
      'l.outcome',
      'l.session',
      'l.client_id',
      'l.address',
      'l.request_id',
      'l.count',
    ])
    .select([
      'l.created_at',
      sql<string | null>`l.detail->>'reason'`.as('reason'),
      sql<string | null>`l.detail->>'provider'`.as('provider'),
    ])
    .where('l.user', '=', userId)
    .where(sql<SqlBool>`starts_with(l.action, 'login.')`)
}
