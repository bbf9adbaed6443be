import { readKeptLanguage } from '../../base/language/request-language.ts'
import { findLanguage, readUiLocales, type Texts } from '../../base/language/texts.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { PageOutcome, RedirectOutcome, Routes } from '../../http/route/route.ts'
import type { SignedInUser, Visitor } from '../../identity/pages/browser/browser-session.ts'
import type { FlowCookies } from '../../identity/pages/browser/flow-cookie.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { definePage, type PageDeps, showProblem } from '../../identity/pages/frame/page-route.ts'
import { askToSignIn, buildSignInUrl } from '../../identity/pages/frame/page-url.ts'
import type { SessionRecord } from '../../identity/session/session.store.ts'
import { loadSession, signOut } from '../../identity/session/session.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findActiveUser } from '../claims/user-claims.store.ts'
import { findClient } from '../client/client.store.ts'
import { type ConsentDeps, decideConsent, readAskedScopes } from '../consent/consent.ts'
import { buildAccountPage, buildConsentPage, buildContinuePage, fieldOfScope } from '../consent/consent-page.ts'
import { answerInteraction, findInteraction, type Interaction } from '../consent/interaction.store.ts'
import { findRestartPath } from '../consent/restart.ts'
import { ENTRY } from '../consent/sign-in-app.ts'
import { buildLoginAnswer, isNeededUser, mustSignInAgain } from '../consent/sign-in-demand.ts'
import { findGrantOf } from '../grant/grant.store.ts'
import { SCOPES } from '../scope/scope-catalogue.ts'

export interface InteractionDeps extends PageDeps, ConsentDeps {
  flowCookies: FlowCookies
}

const RESTART = `${ENTRY}/restart`
const ID_LIMIT = 100

const SCOPE_FIELDS = Object.fromEntries(SCOPES.map(({ name }) => [fieldOfScope(name), 1]))

const ENDED = {
  code: 'answered',
  message: 'is of a question that was answered, or has expired; start again in the app',
} as const
const FOREIGN = { code: 'other_browser', message: 'is of a question that was opened in another browser' } as const

/** The authorization of this id that began in this browser. Throws `link_invalid`. */
async function loadInteraction(
  { flowCookies }: InteractionDeps,
  db: Database,
  { id, cookieHeader, now }: { id: string | undefined; cookieHeader: string | undefined; now: Date },
): Promise<Interaction> {
  const interaction = id === undefined ? undefined : await findInteraction(db, id, now)
  const isOpen = interaction !== undefined && !interaction.isAnswered
  if (isOpen && flowCookies.isOwn(cookieHeader, id)) return interaction
  const [cause, reason] = isOpen
    ? [FOREIGN, 'authorization of another browser']
    : [ENDED, 'authorization answered or expired']
  throw new Problem('link_invalid', `id: ${cause.message}`, { reason, errors: [{ path: 'id', ...cause }] })
}

const pathOf = ({ prompt, id }: Interaction) =>
  `${ENTRY}/${prompt === 'consent' ? 'consent' : 'sign-in'}?${new URLSearchParams({ id })}`

/** Passes the sign-in of this browser to the provider, and continues at the app. */
async function continueAs(
  deps: InteractionDeps,
  db: Database,
  input: {
    interaction: Interaction
    user: SignedInUser
    session: SessionRecord
    visitor: Pick<Visitor, 'texts'>
  },
): Promise<PageOutcome> {
  const { interaction, user, session } = input
  await answerInteraction(db, interaction.id, buildLoginAnswer(interaction, user.userId, session))
  const texts = chooseFlowTexts(interaction, input.visitor)
  const clientName = await findClientName(db, interaction, texts)
  const href = interaction.returnTo
  const page = buildPage({ brand: deps.brand, ...buildContinuePage({ texts, clientName, href }) })
  return {
    ...page,
    // A redirect would be checked against the form-action of the sign-in form that led here.
    headers: { ...page.headers, refresh: `0;url=${href}` },
    audit: { client: interaction.params.client_id },
    actor: { userId: user.userId, sessionId: user.sessionId, account: null },
  }
}

async function findClientName(db: Database, { params }: Interaction, texts: Texts): Promise<string> {
  return (await findClient(db, { id: String(params.client_id) }))?.name ?? texts.say('app.unnamed')
}

/** The language of an authorization: that requested by its app, else that of the visitor. */
const chooseFlowTexts = ({ params }: Interaction, { texts }: Pick<Visitor, 'texts'>): Texts =>
  findLanguage(readUiLocales(params.ui_locales)) ?? texts

const goTo = (location: string): RedirectOutcome => ({ kind: 'redirect', status: 303, location })
/** The pages of an authorization: sign-in and consent (docs/contract/oauth.md#consent). */
export const interactionRoutes: Routes<InteractionDeps> = [
  definePage(
    {
      method: 'GET',
      path: ENTRY,
      resource: 'oauth-page',
      action: 'enter',
      summary: 'The question that an authorization asks',
      query: ['id'],
    },
    async (deps: InteractionDeps, { db, query, cookieHeader, now }) => {
      const interaction = await loadInteraction(deps, db, { id: query.id, cookieHeader, now })
      // The pages in between, such as that of a second step, do not know the request.
      const lang = findLanguage(readUiLocales(interaction.params.ui_locales))?.lang ?? ''
      const cookies = lang === (readKeptLanguage(cookieHeader) ?? '') ? [] : [deps.cookies.keepLanguage(lang)]
      return { ...goTo(pathOf(interaction)), ...(cookies.length > 0 && { cookies }) }
    },
  ),
  definePage(
    {
      method: 'GET',
      path: RESTART,
      resource: 'oauth-page',
      action: 'restart',
      summary: 'Begin an authorization again, with the account that is signed in now',
      query: ['id'],
    },
    async (deps: InteractionDeps, { db, visitor, query, cookieHeader, now }) =>
      goTo(
        await findRestartPath(db, await loadInteraction(deps, db, { id: query.id, cookieHeader, now }), visitor.user),
      ),
  ),
  definePage(
    {
      method: 'GET',
      path: `${ENTRY}/sign-in`,
      resource: 'oauth-page',
      action: 'sign-in',
      summary: 'Continue an authorization as the user of this browser',
      query: ['id'],
      writes: true,
    },
    async (deps: InteractionDeps, { db, visitor, query, cookieHeader, now }) => {
      const interaction = await loadInteraction(deps, db, { id: query.id, cookieHeader, now })
      const { user, browserId } = visitor
      if (!user) return askToSignIn(visitor, pathOf(interaction))
      if (interaction.accountId !== null && interaction.accountId !== user.userId)
        return goTo(await findRestartPath(db, interaction, user))
      const session = await loadSession(db, user.sessionId)
      const mustSignIn = mustSignInAgain(interaction, session)
      if (interaction.prompt === 'login' && !mustSignIn && isNeededUser(interaction, user.userId))
        return continueAs(deps, db, { interaction, user, session, visitor })
      const texts = chooseFlowTexts(interaction, visitor)
      const email = (await findActiveUser(db, { id: user.userId }))?.email ?? ''
      const clientName = await findClientName(db, interaction, texts)
      const signInAgain = mustSignIn ? buildSignInUrl({ next: pathOf(interaction), again: '1' }) : null
      const view = { texts, authorizationId: interaction.id, browserId, email, clientName, signInAgain }
      return buildPage({ brand: deps.brand, ...buildAccountPage(deps, view) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: `${ENTRY}/continue`,
      resource: 'oauth-page',
      action: 'continue',
      event: 'none',
      summary: 'Continue an authorization with the account that is signed in',
      fields: { id: ID_LIMIT },
    },
    async (deps: InteractionDeps, { db, visitor, form, cookieHeader, now }) => {
      const interaction = await loadInteraction(deps, db, { id: form.id, cookieHeader, now })
      const { user } = visitor
      if (!user) return askToSignIn(visitor, pathOf(interaction))
      const session = await loadSession(db, user.sessionId)
      if (interaction.prompt === 'consent' || mustSignInAgain(interaction, session)) return goTo(pathOf(interaction))
      return continueAs(deps, db, { interaction, user, session, visitor })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: `${ENTRY}/switch`,
      resource: 'session',
      action: 'revoke',
      event: 'shared',
      summary: 'Sign out of this browser, to continue an authorization with another account',
      fields: { id: ID_LIMIT },
    },
    async (deps: InteractionDeps, { db, visitor, form, cookieHeader, now }) => {
      const interaction = await loadInteraction(deps, db, { id: form.id, cookieHeader, now })
      const { user } = visitor
      const ended = user
        ? await signOut(db, { caller: user, all: false, family: true, refreshToken: undefined, now })
        : []
      return {
        // The session of the provider ends with that of the browser, with everything based on it.
        ...goTo(buildSignInUrl({ next: `${RESTART}?${new URLSearchParams({ id: interaction.id })}` })),
        cookies: deps.cookies.signOut(),
        changed: ended.map((id) => ({ id, account: null })),
        actor: { userId: user?.userId ?? null, sessionId: user?.sessionId ?? null, account: null },
      }
    },
  ),
  definePage(
    {
      method: 'GET',
      path: `${ENTRY}/consent`,
      resource: 'oauth-page',
      action: 'consent',
      summary: 'What an app asks for',
      query: ['id'],
    },
    async (deps: InteractionDeps, { db, visitor, query, cookieHeader, now }) => {
      const interaction = await loadInteraction(deps, db, { id: query.id, cookieHeader, now })
      const { user, browserId } = visitor
      if (!user) return askToSignIn(visitor, pathOf(interaction))
      if (interaction.accountId !== user.userId) return goTo(await findRestartPath(db, interaction, user))
      const clientId = String(interaction.params.client_id)
      const client = await findClient(db, { id: clientId })
      if (!client) throw new Problem('link_invalid', 'The app is not registered any more.')
      const { redirect_uri: redirectUri } = interaction.params
      return buildPage({
        brand: deps.brand,
        ...buildConsentPage(deps, {
          texts: chooseFlowTexts(interaction, visitor),
          authorizationId: interaction.id,
          browserId,
          client,
          redirectUri: typeof redirectUri === 'string' ? redirectUri : null,
          email: (await findActiveUser(db, { id: user.userId }))?.email ?? '',
          asked: readAskedScopes(interaction),
          allowed: (await findGrantOf(db, { userId: user.userId, clientId }))?.scopes,
        }),
      })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: `${ENTRY}/consent`,
      resource: 'oauth-decision',
      action: 'create',
      event: 'shared',
      summary: 'Decide whether an app gets access',
      fields: { id: ID_LIMIT, decision: 10, ...SCOPE_FIELDS } as Record<string, number>,
    },
    async (deps: InteractionDeps, { db, visitor, form, cookieHeader, requestId, now }) => {
      const interaction = await loadInteraction(deps, db, { id: form.id, cookieHeader, now })
      const { user } = visitor
      if (!user) return askToSignIn(visitor, pathOf(interaction))
      const { decision } = form
      if (decision !== 'approve' && decision !== 'deny')
        return showProblem(deps, new Problem('validation_failed', 'decision: must be approve or deny'), {
          requestId,
          visitor,
        })
      const scopes = readAskedScopes(interaction).filter((name) => form[fieldOfScope(name)] === '1')
      const recorded = await decideConsent(deps, db, {
        authorizationId: interaction.id,
        isApproved: decision === 'approve',
        scopes,
        userId: user.userId,
        sessionId: user.sessionId,
        now,
      })
      const { grant, clientId, authorizeUrl } = recorded
      return {
        ...goTo(authorizeUrl),
        changed: [{ id: grant?.id ?? null, account: null, url: null }],
        actor: { userId: user.userId, sessionId: user.sessionId, account: null },
        audit: { decision, client: clientId, ...(grant && { scopes: grant.scopes }) },
      }
    },
  ),
]
