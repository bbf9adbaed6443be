import type { AccountId } from '../../base/id.ts'
import { readPage } from '../../http/listing/page.ts'
import { notFound } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { includesAccount } from '../../http/shape/caller.ts'
import { loadAccount } from '../account/account.ts'
import {
  CreatePortalSessionBody,
  EndedPortalSession,
  EndPortalSessionBody,
  OpenedPortalSession,
  OpenPortalSessionBody,
  PortalSessionParams,
  PortalSessionRow,
  PortalSessionWithUrl,
  toListedRow,
  toOpenedRow,
  toPortalSessionRow,
} from './portal-session.schema.ts'
import { type FoundPortalSession, type PortalSessionRecord, selectPortalSessions } from './portal-session.store.ts'
import {
  createPortalSession,
  leavePortalSession,
  openPortalSession,
  type PortalSessionDeps,
  revokePortalSession,
} from './portal-session.ts'

const PORTAL_SESSION_FIELDS = {
  document_id: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
} as const

const changedOf = ({ id, account }: PortalSessionRecord) => [{ id, account, url: null }]

/** The actor of a session whose request carries no token in its header. */
const actorOf = ({ id, externalUser, account, userId, apiKeyId }: FoundPortalSession) => ({
  userId,
  sessionId: null,
  account,
  apiKeyId,
  portal: { id, externalUser },
})

/** Sessions of the tenants' portal (docs/contract/portal.md#sessions). */
export const portalSessionRoutes: Routes<PortalSessionDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/identity/account/{id}/portal-session',
      resource: 'portal-session',
      action: 'create',
      accountScope: 'account',
      ownAccounts: true,
      status: 201,
      summary: 'Make a link that opens the portal of an account',
      description:
        'For an API key of the platform: the link opens the portal once, within 120 s, for a person who need not be a user. The key must hold, in this account, everything that the role holds. The session ends with the key.',
      params: IdParams,
      body: CreatePortalSessionBody,
      data: PortalSessionWithUrl,
      shownOnce: 'url',
      problems: ['limit_reached'],
    },
    {
      row: {
        find: (_deps: PortalSessionDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, scope, body, caller, now }) => {
        const { role, external_user = null, return_url = null, lifetime_seconds, theme, language } = body
        const { session, url } = await createPortalSession(deps, db, {
          target: { id: params.id, scope },
          role,
          externalUser: external_user,
          returnUrl: return_url,
          ...(lifetime_seconds !== undefined && { lifetimeSeconds: lifetime_seconds }),
          look: { ...(theme && { theme }), ...(language && { language }) },
          caller,
          now,
        })
        return {
          data: { ...toPortalSessionRow(session, now), url },
          message: 'Portal session made.',
          changed: changedOf(session),
          location: `/api/v3/identity/account/${session.account}/portal-session`,
          audit: { role, external_user },
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/account/{id}/portal-session',
      resource: 'portal-session',
      action: 'find-all',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'List the portal sessions of an account',
      params: IdParams,
      data: PortalSessionRow,
      list: PORTAL_SESSION_FIELDS,
    },
    {
      row: {
        find: (_deps: PortalSessionDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, scope, listing, now }) => {
        const account = params.id as AccountId
        if (!includesAccount(scope, account)) throw notFound('account')
        const page = await readPage(db, selectPortalSessions(db, account), {
          listing,
          fields: PORTAL_SESSION_FIELDS,
          toRow: (row) => toListedRow(row, now),
        })
        // A row proves that the account existed; only an empty list needs a check.
        if (page.data.length === 0) await loadAccount(db, { id: account, scope })
        return { ...page, message: 'Portal sessions.', changed: [{ id: null, account }] }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}/portal-session/{session}',
      resource: 'portal-session',
      action: 'delete',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Revoke a portal session, or its link',
      params: PortalSessionParams,
      data: PortalSessionRow,
    },
    {
      handle: async (_deps: PortalSessionDeps, { db, params, scope, now }) => {
        const target = { id: params.id, scope }
        const session = await revokePortalSession(db, { target, id: params.session, now })
        return {
          data: toPortalSessionRow(session, now),
          message: 'Portal session revoked.',
          changed: changedOf(session),
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/portal-session/open',
      resource: 'portal-session',
      action: 'open',
      accountScope: 'account',
      access: 'public',
      strictRateLimit: true,
      summary: 'Open the portal session of a link',
      description: 'For the page of the portal: a link is opened once.',
      body: OpenPortalSessionBody,
      data: OpenedPortalSession,
      problems: ['link_invalid'],
    },
    {
      handle: async (deps: PortalSessionDeps, { db, body, now }) => {
        const opened = await openPortalSession(deps, db, { link: body.token, now })
        const { session } = opened
        if ('problem' in opened)
          return {
            kind: 'refusal',
            problem: opened.problem,
            ...(session && { target: session.id, actor: actorOf(session) }),
          }
        return {
          data: toOpenedRow(opened.session, { token: opened.token, now }),
          message: 'Portal session opened.',
          changed: changedOf(opened.session),
          actor: actorOf(opened.session),
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/portal-session/end',
      resource: 'portal-session',
      action: 'end',
      accountScope: 'account',
      access: 'public',
      summary: 'End the portal session of a token',
      description: 'As its person leaves. Answers the same for a token that ended already, and for one that never was.',
      body: EndPortalSessionBody,
      data: EndedPortalSession,
    },
    {
      handle: async (_deps: PortalSessionDeps, { db, body, now }) => {
        const session = await leavePortalSession(db, { token: body.token, now })
        return {
          data: { is_ended: true },
          message: 'Portal session ended.',
          ...(session ? { changed: changedOf(session), actor: actorOf(session) } : { changed: [] }),
        }
      },
    },
  ),
]
