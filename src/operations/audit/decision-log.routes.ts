import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { loadClient } from '../../oauth/client/client.ts'
import { OF_LOG } from './audit.schema.ts'
import { type LoggedDecision, loggedDecision, selectDecisions } from './decision-log.store.ts'

const LoggedDecisionRow = namedObject('OauthClientDecision', {
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

function toDecisionRow(entry: LoggedDecision): Static<typeof LoggedDecisionRow> {
  const { grant, decision, scopes } = entry
  return {
    ...toStoredRow(entry),
    decision: decision === 'approve' ? 'approve' : 'deny',
    scopes: scopes ?? [],
    grant,
    updated_at: entry.createdAt.toISOString(),
  }
}

/** Decisions of users about an app, allowed and refused (docs/contract/oauth.md#decision-log). */
export const decisionLogRoutes: Routes<object> = [
  defineList(
    {
      ...OF_LOG,
      path: '/api/v3/oauth/client/{id}/decision',
      resource: 'oauth-client',
      action: 'find-decisions',
      summary: 'List the decisions of users about an OAuth client',
      description: 'Refusals included, within the retention of the audit log.',
      data: LoggedDecisionRow,
    },
    {
      loadParent: ({ db, params }) => loadClient(db, params.id),
      rows: ({ db, params }) => buildWholeList(selectDecisions(db, params.id), { table: 'l' }),
      toRow: toDecisionRow,
      message: 'Decisions.',
    },
  ),
]
