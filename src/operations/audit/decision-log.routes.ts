import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadClient } from '../../oauth/client/client.ts'
import { LoggedDecisionRow, toDecisionRow } from './decision-log.schema.ts'
import { selectDecisions } from './decision-log.store.ts'

const DECISION_FIELDS = { created_at: { type: 'timestamp', sortable: true } } as const

/** What users allowed an app to do, and what they refused (docs/contract/oauth.md#decision-log). */
export const decisionLogRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/oauth/client/{id}/decision',
      resource: 'oauth-client',
      action: 'find-decisions',
      summary: 'List the decisions of users about an OAuth client',
      description: 'Refusals included, within the retention of the audit log.',
      params: IdParams,
      data: LoggedDecisionRow,
      list: DECISION_FIELDS,
    },
    {
      loadParent: ({ db, params }) => loadClient(db, params.id),
      rows: ({ db, params }) => buildWholeList(selectDecisions(db, params.id), { table: 'l' }),
      toRow: toDecisionRow,
      message: 'Decisions.',
    },
  ),
]
