import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Routes } from '../../http/route/route.ts'
import type { SignedInUser } from '../../identity/pages/browser/browser-session.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { definePage, type PageDeps, type PageRequest } from '../../identity/pages/frame/page-route.ts'
import { buildRefreshUrl } from '../../identity/pages/frame/page-url.ts'
import type { SignInPageDeps } from '../../identity/pages/sign-in/sign-in-goal.ts'
import {
  deleteEngineSession,
  ENGINE_DECISION_PATH,
  findEngineToken,
} from '../../identity/social-login/flow/engine-session.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findActiveUser } from '../claims/user-claims.store.ts'
import { buildContinuePage, fieldOfScope } from '../consent/consent-page.ts'
import type { AskedConsent, EngineConsent } from '../engine-consent/engine-consent.ts'
import { ADDED_SCOPES, buildEngineConsentPage, buildEngineSignInPage } from '../engine-consent/engine-consent-page.ts'

/** Dependencies of the consent page of a managed engine. */
export interface EngineInteractionDeps extends PageDeps, Pick<SignInPageDeps, 'listProviders'> {
  keyring: Keyring
  /** Undefined with the embedded engine, whose page is another one. */
  engineConsent: EngineConsent | undefined
}

const ID_LIMIT = 100
const ID_PATTERN = /^[\w-]{1,100}$/

const SCOPE_FIELDS = Object.fromEntries(ADDED_SCOPES.map(({ name }) => [fieldOfScope(name), 1]))

/** The user who can decide at the engine; none before a sign-in in this browser. */
type Decider = { user: SignedInUser; token: string } | undefined

const pathOf = (id: string) => `${ENGINE_DECISION_PATH}?${new URLSearchParams({ authorization_id: id })}`

/** The engine, and the id of the authorization. Throws `link_invalid`. */
function readRequest({ engineConsent }: EngineInteractionDeps, id: string | undefined) {
  if (engineConsent && id !== undefined && ID_PATTERN.test(id)) return { engineConsent, id }
  throw new Problem('link_invalid', 'No such authorization at a managed engine.')
}

async function findDecider(
  deps: EngineInteractionDeps,
  db: Database,
  { visitor, now }: Pick<PageRequest<never, never, unknown>, 'visitor' | 'now'>,
): Promise<Decider> {
  const { user } = visitor
  const token = user && (await findEngineToken(deps, db, { sessionId: user.sessionId, now }))
  return user && token !== undefined ? { user, token } : undefined
}

type PreparedPage = { id: string; decider: NonNullable<Decider>; asked: AskedConsent } | { id: string; decider: null }

/**
 * The consent page of a managed engine (docs/contract/oauth-exchange.md#consent-at-a-managed-engine). The engine sends
 * the browser here, and is called on behalf of the user, with a token stored by a sign-in with one of its providers for
 * this decision.
 */
export const engineInteractionRoutes: Routes<EngineInteractionDeps> = [
  definePage(
    {
      method: 'GET',
      path: ENGINE_DECISION_PATH,
      resource: 'oauth-page',
      action: 'engine-consent',
      summary: 'What an app of the managed engine asks for',
      query: ['authorization_id'],
      writes: true,
    },
    {
      prepare: async (deps: EngineInteractionDeps, request): Promise<PreparedPage> => {
        const { engineConsent, id } = readRequest(deps, request.query.authorization_id)
        const decider = await findDecider(deps, request.db, request)
        if (!decider) return { id, decider: null }
        const asked = await engineConsent.describe(
          request.db,
          { userId: decider.user.userId, token: decider.token },
          { authorizationId: id, now: request.now },
        )
        if (asked.kind === 'covered') await engineConsent.leave(decider.token)
        return { id, decider, asked }
      },
      handle: async (deps, { db, visitor, prepared }) => {
        const { id } = prepared
        const { texts } = visitor
        if (prepared.decider === null) {
          if (visitor.isRefreshable) return { kind: 'redirect', status: 303, location: buildRefreshUrl(pathOf(id)) }
          const email = visitor.user ? ((await findActiveUser(db, { id: visitor.user.userId }))?.email ?? null) : null
          const wish = { redirectUrl: undefined, next: pathOf(id), texts, isForDecision: true }
          const providers = deps.listProviders(wish)
          return buildPage({ brand: deps.brand, ...buildEngineSignInPage({ texts, providers, email }) })
        }
        const { asked, decider } = prepared
        const { userId, sessionId } = decider.user
        if (asked.kind === 'covered') {
          await deleteEngineSession(db, { sessionId })
          const href = asked.authorizeUrl
          const clientName = URL.parse(href)?.host || texts.say('app.unnamed')
          const page = buildPage({ brand: deps.brand, ...buildContinuePage({ texts, clientName, href }) })
          return {
            ...page,
            headers: { ...page.headers, refresh: `0;url=${href}` },
            actor: { userId, sessionId, account: null },
          }
        }
        const email = (await findActiveUser(db, { id: userId }))?.email ?? ''
        const view = { texts, authorizationId: id, browserId: visitor.browserId, asked, email }
        return buildPage({ brand: deps.brand, ...buildEngineConsentPage(deps, view) })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: ENGINE_DECISION_PATH,
      resource: 'oauth-decision',
      action: 'create',
      event: 'shared',
      summary: 'Decide whether an app of the managed engine gets access',
      fields: { authorization_id: ID_LIMIT, decision: 10, ...SCOPE_FIELDS } as Record<string, number>,
    },
    {
      prepare: async (deps: EngineInteractionDeps, request) => {
        const { form, db, now } = request
        const { engineConsent, id } = readRequest(deps, form.authorization_id)
        const { decision } = form
        if (decision !== 'approve' && decision !== 'deny')
          throw new Problem('validation_failed', 'decision: must be approve or deny')
        const decider = await findDecider(deps, db, request)
        if (!decider) return { id, decider: null }
        const scopes = ADDED_SCOPES.map(({ name }) => name).filter((name) => form[fieldOfScope(name)] === '1')
        const user = { userId: decider.user.userId, token: decider.token }
        const decided = await engineConsent.decide(db, { user, authorizationId: id, decision, scopes, now })
        await engineConsent.leave(decider.token)
        return { id, decider, decided, decision, scopes }
      },
      handle: async (_deps, { db, prepared }) => {
        if (prepared.decider === null) return { kind: 'redirect', status: 303, location: pathOf(prepared.id) }
        const { decider, decided, decision, scopes } = prepared
        const { userId, sessionId } = decider.user
        await deleteEngineSession(db, { sessionId })
        return {
          kind: 'redirect',
          status: 303,
          location: decided.authorizeUrl,
          changed: [{ id: decided.grantId, account: null, url: null }],
          actor: { userId, sessionId, account: null },
          audit: { decision, client: decided.clientId, ...(decision === 'approve' && { scopes }) },
        }
      },
    },
  ),
]
