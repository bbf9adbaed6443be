import { auditEntry, type ListedEntry } from '../../event/recording/audit.store.ts'
import { enumSchema, IdParams, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'

/** A list of the entries about one row, by their time. */
export const OF_LOG = {
  params: IdParams,
  list: { created_at: { type: 'timestamp', sortable: true } },
} as const

/** An entry of the audit log as the API shows it. */
export const AuditRow = namedObject('AuditEntry', {
  document_id: UuidSchema,
  action: Type.String({ description: '`<resource>.<action>`.' }),
  outcome: enumSchema(['success', 'failure']),
  user: nullable(UuidSchema),
  session: nullable(UuidSchema),
  api_key: nullable(UuidSchema),
  client_id: nullable(Type.String({ description: 'The app that acted for the user.' })),
  portal_session: nullable(UuidSchema),
  external_user: nullable(Type.String({ description: 'The name that the platform gave the end user of the portal.' })),
  account: nullable(UuidSchema),
  target: nullable(UuidSchema),
  address: nullable(Type.String()),
  request_id: nullable(Type.String()),
  detail: Type.Record(Type.String(), Type.Unknown()),
  count: Type.Integer({
    description:
      'Number of equal refusals of one minute that the entry stands for; 1 for other entries. The other members are those of the first refusal.',
  }),
  created_at: TimestampSchema,
  updated_at: Type.String({
    format: 'date-time',
    description: 'The same as `created_at`: of an entry only `count` changes, for a minute.',
  }),
})

const toEntryRow = wireOf(auditEntry, AuditRow)

/** Maps an entry for the wire. */
export function toAuditRow(entry: ListedEntry): Static<typeof AuditRow> {
  return { ...toEntryRow(entry), updated_at: entry.createdAt.toISOString() }
}
