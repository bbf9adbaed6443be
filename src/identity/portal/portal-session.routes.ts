import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { ACCOUNT_ROW, listUnderAccount } from '../account/own-account.ts'
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

const OF_PORTAL_SESSION = { resource: 'portal-session', accountScope: 'account' } as const

/** Sessions of the tenants' portal (docs/contract/portal.md#sessions). */
export const portalSessionRoutes: Routes<PortalSessionDeps> = [
  defineRoute(
    {
      ...OF_PORTAL_SESSION,
      method: 'POST',
      path: '/api/v3/identity/account/{id}/portal-session',
      action: 'create',
      ownAccounts: true,
      status: 201,
      summary: 'Create a link that opens the portal of an account',
      description:
        'For an API key of the platform: the link opens the portal once, within 120 s, for an end user of the platform, who need not be a user of the service. The key must hold, in this account, everything that the role holds. The session ends with the key.',
      params: IdParams,
      body: CreatePortalSessionBody,
      data: PortalSessionWithUrl,
      shownOnce: 'url',
      problems: ['limit_reached'],
    },
    {
      row: ACCOUNT_ROW,
      handle: async (deps: PortalSessionDeps, { db, params, scope, body, caller, now }) => {
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
          message: 'Portal session created.',
          changed: changedOf(session),
          location: `/api/v3/identity/account/${session.account}/portal-session`,
          audit: { role, external_user },
        }
      },
    },
  ),
  defineList(
    {
      ...OF_PORTAL_SESSION,
      path: '/api/v3/identity/account/{id}/portal-session',
      ownAccounts: true,
      summary: 'List the portal sessions of an account',
      params: IdParams,
      data: PortalSessionRow,
      list: PORTAL_SESSION_FIELDS,
    },
    {
      ...listUnderAccount(selectPortalSessions),
      toRow: (row, { now }) => toListedRow(row, now),
      message: 'Portal sessions.',
    },
  ),
  defineRoute(
    {
      ...OF_PORTAL_SESSION,
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}/portal-session/{session}',
      action: 'delete',
      ownAccounts: true,
      summary: 'Revoke a portal session, or its link',
      params: PortalSessionParams,
      data: PortalSessionRow,
    },
    async (_deps: PortalSessionDeps, { db, params, scope, now }) => {
      const session = await revokePortalSession(db, { target: { id: params.id, scope }, id: params.session, now })
      return {
        data: toPortalSessionRow(session, now),
        message: 'Portal session revoked.',
        changed: changedOf(session),
      }
    },
  ),
  defineRoute(
    {
      ...OF_PORTAL_SESSION,
      method: 'POST',
      path: '/api/v3/auth/portal-session/open',
      action: 'open',
      access: 'public',
      strictRateLimit: true,
      summary: 'Open the portal session of a link',
      description: 'For the page of the portal: a link is opened once.',
      body: OpenPortalSessionBody,
      data: OpenedPortalSession,
      problems: ['link_invalid'],
    },
    async (deps: PortalSessionDeps, { db, body, now }) => {
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
  ),
  defineRoute(
    {
      ...OF_PORTAL_SESSION,
      method: 'POST',
      path: '/api/v3/auth/portal-session/end',
      action: 'end',
      access: 'public',
      summary: 'End the portal session of a token',
      description: 'Signs the end user out of the portal. The answer is the same for an ended and an unknown token.',
      body: EndPortalSessionBody,
      data: EndedPortalSession,
    },
    async (_deps: PortalSessionDeps, { db, body, now }) => {
      const session = await leavePortalSession(db, { token: body.token, now })
      return {
        data: { is_ended: true },
        message: 'Portal session ended.',
        ...(session ? { changed: changedOf(session), actor: actorOf(session) } : { changed: [] }),
      }
    },
  ),
]
