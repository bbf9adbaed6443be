import { listAuditEntries } from '../../event/recording/audit.store.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { AuditRow, toAuditRow } from './audit.schema.ts'

const AUDIT_FIELDS = {
  document_id: { type: 'uuid' },
  action: { type: 'text' },
  outcome: { type: 'text' },
  user: { type: 'uuid' },
  session: { type: 'uuid' },
  api_key: { type: 'uuid' },
  client_id: { type: 'text' },
  portal_session: { type: 'uuid' },
  account: { type: 'uuid' },
  target: { type: 'uuid' },
  address: { type: 'text' },
  request_id: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** Reads the audit log. No route writes it: the pipeline and the operations record entries. */
export const auditRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/audit/log',
      resource: 'audit-log',
      cell: { by: 'all' },
      summary: 'List the audit log',
      data: AuditRow,
      list: AUDIT_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db }) => listAuditEntries(db),
      toRow: toAuditRow,
      message: 'Audit log.',
    },
  ),
]
