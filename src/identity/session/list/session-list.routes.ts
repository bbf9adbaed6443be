import { readPage } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { findOwners } from '../../access/own-rows.ts'
import { SessionsRevoked } from '../session.schema.ts'
import { toSessionRecord } from '../session.store.ts'
import { ListedSessionRow, toListedSessionRow } from './session-list.schema.ts'
import { selectLivingSessions } from './session-list.store.ts'
import { endSession, loadEndableSession } from './session-list.ts'

const SESSION_FIELDS = {
  document_id: { type: 'uuid' },
  user: { type: 'uuid' },
  account: { type: 'uuid' },
  parent: { type: 'uuid' },
  client_id: { type: 'text' },
  address: { type: 'text' },
  auth_time: { type: 'timestamp' },
  last_used_at: { type: 'timestamp' },
  expires_at: { type: 'timestamp' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

/** The list of sessions (docs/contract/sessions.md#session-endpoints). */
export const sessionListRoutes: Routes<unknown> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/session',
      resource: 'session',
      action: 'find-all',
      accountScope: 'none',
      access: 'caller',
      opensAll: true,
      summary: 'List sessions',
      description:
        "The caller's own sessions that are neither revoked nor expired; with the permission `session:find-all` those of all users.",
      data: ListedSessionRow,
      problems: ['permission_denied'],
      list: SESSION_FIELDS,
    },
    {
      handle: async (_deps, { db, caller, permission, listing, now }) => {
        const page = await readPage(db, selectLivingSessions(db, findOwners(caller, permission), now), {
          listing,
          fields: SESSION_FIELDS,
          toRow: (row) => toListedSessionRow(toSessionRecord(row), caller.sessionId),
        })
        return { ...page, message: 'Sessions.' }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/identity/session/{id}',
      resource: 'session',
      action: 'delete',
      accountScope: 'none',
      access: 'caller',
      opensAll: true,
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
