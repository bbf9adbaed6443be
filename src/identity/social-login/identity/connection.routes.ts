import { type IdMaker, isUuid } from '../../../base/id.ts'
import type { TextKey } from '../../../base/language/texts.ts'
import { notFound, Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import { findNotice } from '../../pages/frame/notice.ts'
import { buildPage } from '../../pages/frame/page.ts'
import { type PageDeps, showProblem } from '../../pages/frame/page-route.ts'
import { redirectTo } from '../../pages/frame/page-url.ts'
import { defineUserPage } from '../../pages/frame/user-page.ts'
import { beginFlow, type FlowDeps, keepFlow } from '../social-login.ts'
import { buildConnectionsPage, CONNECTIONS } from './connection-page.ts'
import { describeConnections, linkIdentity, peekLink, unlinkIdentity } from './identity.ts'

/** Dependencies of the page of the connected providers. */
export interface ConnectionPageDeps extends PageDeps, FlowDeps {
  ids: IdMaker
}

const NOTICES: Readonly<Record<string, TextKey>> = {
  confirmed: 'security.confirmed',
  connected: 'connections.connected',
  disconnected: 'connections.disconnected',
}

/** Reason of a failure, by its name in a redirect: the provider's text is not repeated. */
const NOT_CONNECTED =
  'The service was not connected. Start again within a minute, with an account that no other user has connected.'

const RETURN = `${CONNECTIONS}?notice=confirmed`

/** The providers of a user (docs/contract/pages.md#connected-services). */
export const connectionRoutes: Routes<ConnectionPageDeps> = [
  defineUserPage(
    {
      path: CONNECTIONS,
      resource: 'connections-page',
      summary: 'The providers of the user',
      query: ['notice', 'link_code', 'error'],
    },
    async (deps: ConnectionPageDeps, { db, user, visitor, query, now }) => {
      const { userId } = user
      const { link_code: linkCode, error } = query
      const identity = linkCode === undefined ? undefined : await peekLink(db, { code: linkCode, userId, now })
      const isLost = linkCode !== undefined && !identity
      const view = {
        ...(await describeConnections(deps, db, userId)),
        providers: deps.engine.listProviders(),
        ...visitor,
        asked: linkCode !== undefined && identity ? { linkCode, identity } : undefined,
        notice: findNotice(visitor.texts, NOTICES, query.notice),
        problem: error === undefined && !isLost ? undefined : visitor.texts.say('connections.not-connected'),
      }
      return buildPage({ brand: deps.brand, ...buildConnectionsPage(deps, view) })
    },
  ),
  defineUserPage(
    {
      path: `${CONNECTIONS}/begin`,
      resource: 'identity',
      action: 'link',
      fresh: 'factor',
      returnTo: RETURN,
      writes: true,
      strictRateLimit: true,
      summary: 'Begin to connect a provider',
      query: ['provider'],
    },
    {
      prepare: (deps: ConnectionPageDeps, { db, user, query, now }) =>
        beginFlow(deps, db, {
          provider: query.provider ?? '',
          redirectUrl: `${deps.baseUrl()}${CONNECTIONS}`,
          codeChallenge: null,
          browser: null,
          linkTo: user.userId,
          now,
        }),
      handle: async (_deps, { db, query, prepared, now }) => {
        await keepFlow(db, prepared, now)
        return { kind: 'redirect', location: prepared.redirectUrl, audit: { provider: query.provider } }
      },
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: CONNECTIONS,
      resource: 'identity',
      action: 'create',
      fresh: 'factor',
      returnTo: RETURN,
      summary: 'Connect a provider with the form',
      fields: { code: 200 },
    },
    async (deps: ConnectionPageDeps, { db, user, form, now }) => {
      const result = await linkIdentity(deps, db, { code: form.code, caller: user.caller, now })
      if (result.kind === 'refused') {
        const problem = new Problem('identity_not_linked', NOT_CONNECTED, { reason: result.reason })
        const actor = { userId: user.userId, sessionId: user.sessionId, account: null }
        return { kind: 'refusal', problem, instead: { location: `${CONNECTIONS}?error=${problem.code}` }, actor }
      }
      const { identity } = result
      return {
        ...redirectTo(`${CONNECTIONS}?notice=connected`),
        changed: [{ id: identity.id, account: null }],
        audit: { provider: identity.provider },
      }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${CONNECTIONS}/disconnect`,
      resource: 'identity',
      action: 'delete',
      returnTo: CONNECTIONS,
      summary: 'Disconnect a provider with the form',
      fields: { id: 36 },
    },
    async (deps: ConnectionPageDeps, { db, user, visitor, form, requestId }) => {
      if (!isUuid(form.id)) return showProblem(deps, notFound('identity'), { requestId, visitor })
      const identity = await unlinkIdentity(deps, db, { id: form.id, caller: user.caller })
      return {
        ...redirectTo(`${CONNECTIONS}?notice=disconnected`),
        changed: [{ id: identity.id, account: null }],
        audit: { provider: identity.provider },
      }
    },
  ),
]
