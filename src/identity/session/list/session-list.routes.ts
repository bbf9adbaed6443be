import { rowFields } from '../../../http/listing/listing.ts'
import { buildWholeList } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineList } from '../../../http/route/row-route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { findOwners } from '../../access/own-rows.ts'
import { SessionsRevoked } from '../session.schema.ts'
import { toSessionRecord } from '../session.store.ts'
import { ListedSessionRow, toListedSessionRow } from './session-list.schema.ts'
import { selectLivingSessions } from './session-list.store.ts'
import { endSession, loadEndableSession } from './session-list.ts'

const SESSION_FIELDS = rowFields({
  user: { type: 'uuid' },
  account: { type: 'uuid' },
  parent: { type: 'uuid' },
  client_id: { type: 'text' },
  address: { type: 'text' },
  auth_time: { type: 'timestamp' },
  last_used_at: { type: 'timestamp' },
  expires_at: { type: 'timestamp' },
})

const OF_SESSION = { resource: 'session', accountScope: 'none', access: 'caller', opensAll: true } as const

/** The list of sessions (docs/contract/sessions.md#session-endpoints). */
export const sessionListRoutes: Routes<unknown> = [
  defineList(
    {
      ...OF_SESSION,
      path: '/api/v3/identity/session',
      summary: 'List sessions',
      description:
        "The caller's own sessions that are neither revoked nor expired; with the permission `session:find-all` those of all users.",
      data: ListedSessionRow,
      problems: ['permission_denied'],
      list: SESSION_FIELDS,
    },
    {
      rows: ({ db, caller, permission, now }) =>
        buildWholeList(selectLivingSessions(db, findOwners(caller, permission), now)),
      toRow: (row, { caller }) => toListedSessionRow(toSessionRecord(row), caller.sessionId),
      message: 'Sessions.',
    },
  ),
  defineRoute(
    {
      ...OF_SESSION,
      method: 'DELETE',
      path: '/api/v3/identity/session/{id}',
      action: 'delete',
      summary: 'End a session, at once',
      description:
        "Also ends the sessions that were opened from it. The caller's own session; with the permission `session:delete` any user's, if the caller holds everything that the user holds.",
      params: IdParams,
      data: SessionsRevoked,
      problems: ['permission_denied'],
    },
    {
      row: {
        find: (_deps, { db, params, caller, permission, now }) =>
          loadEndableSession(db, { id: params.id, caller, permission, now }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, caller, permission, now }) => {
        const ended = await endSession(db, { id: params.id, caller, permission, now })
        return {
          data: { revoked: ended.length },
          message: 'Session ended.',
          changed: ended.map((id) => ({ id, account: null })),
        }
      },
    },
  ),
]
