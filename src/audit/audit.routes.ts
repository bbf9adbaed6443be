import { defineRoute, type Routes } from '../http/route.ts'
import { readPage } from '../listing/page.ts'
import { AuditRow, toAuditRow } from './audit.schema.ts'
import { selectAuditEntries, toAuditRecord } from './audit.store.ts'

const AUDIT_FIELDS = {
  document_id: { type: 'uuid' },
  action: { type: 'text', isLikeInRange: true },
  outcome: { type: 'text', isLikeInRange: true },
  user: { type: 'uuid' },
  session: { type: 'uuid' },
  api_key: { type: 'uuid' },
  client_id: { type: 'text', isLikeInRange: true },
  account: { type: 'uuid' },
  target: { type: 'uuid' },
  address: { type: 'text', isLikeInRange: true },
  request_id: { type: 'text', isLikeInRange: true },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** Reads the audit log. No route writes it: the pipeline and the operations record entries. */
export const auditRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/audit/log',
      resource: 'audit-log',
      action: 'find-all',
      accountScope: 'none',
      summary: 'List the audit log',
      data: AuditRow,
      list: AUDIT_FIELDS,
    },
    {
      handle: async (_deps: object, { db, listing }) => {
        const page = await readPage(db, selectAuditEntries(db), {
          listing,
          fields: AUDIT_FIELDS,
          toRow: (row) => toAuditRow(toAuditRecord(row)),
        })
        return { ...page, message: 'Audit log.' }
      },
    },
  ),
]
