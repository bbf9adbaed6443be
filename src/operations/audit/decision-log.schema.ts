import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { type LoggedDecision, loggedDecision } from './decision-log.store.ts'

/** One decision of a user about an app. */
export const LoggedDecisionRow = namedObject('OauthClientDecision', {
  document_id: UuidSchema,
  user: nullable(UuidSchema),
  decision: enumSchema(['approve', 'deny']),
  scopes: Type.Array(Type.String(), { description: 'The allowed scopes; none for a refusal.' }),
  grant: nullable({ ...UuidSchema, description: 'The grant that came of it; null for a refusal.' }),
  address: nullable(Type.String()),
  request_id: nullable(Type.String()),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const toStoredRow = wireOf(loggedDecision, LoggedDecisionRow)

/** Maps an audit entry of a decision for the wire. */
export function toDecisionRow(entry: LoggedDecision): Static<typeof LoggedDecisionRow> {
  const { grant, decision, scopes } = entry
  return {
    ...toStoredRow(entry),
    decision: decision === 'approve' ? 'approve' : 'deny',
    scopes: scopes ?? [],
    grant,
    updated_at: entry.createdAt.toISOString(),
  }
}
