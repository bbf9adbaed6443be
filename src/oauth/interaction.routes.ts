import { parseCookie } from 'cookie'
import { Problem } from '../http/problem.ts'
import type { PageOutcome, RedirectOutcome, Routes } from '../http/route.ts'
import type { SignedInPerson, Visitor } from '../pages/browser-session.ts'
import { buildPage } from '../pages/page.ts'
import { definePage, type PageDeps, showProblem } from '../pages/page-route.ts'
import { askToSignIn, buildSignInUrl } from '../pages/page-url.ts'
import type { Database } from '../postgres/database.ts'
import type { SessionRecord } from '../session/session.store.ts'
import { loadSession, signOut } from '../session/session.ts'
import { findActiveAccount, findClient } from './client.store.ts'
import { type ConsentDeps, decideConsent, readAskedScopes } from './consent.ts'
import { buildAccountPage, buildConsentPage, buildContinuePage, fieldOfScope } from './consent-page.ts'
import { findGrantOf } from './grant.store.ts'
import { answerInteraction, findInteraction, type Interaction } from './interaction.store.ts'
import { choosePageTexts, type PageTexts } from './page-text.ts'
import { PROVIDER_PATH } from './provider/provider-source.ts'
import { SCOPES } from './scope-catalogue.ts'
import { buildLoginAnswer, isNeededPerson, isSignedInSince, mustSignInAgain } from './sign-in-demand.ts'

/** Dependencies of the pages of an authorization. */
export interface InteractionDeps extends PageDeps, ConsentDeps {}

/** The cookie that ties an authorization to the browser that began it. The provider sets it. */
const INTERACTION_COOKIE = 'signalbox_oauth_interaction'

const ENTRY = '/auth/oauth'
const RESTART = `${ENTRY}/restart`
const ID_LIMIT = 100

const SCOPE_FIELDS = Object.fromEntries(SCOPES.map(({ name }) => [fieldOfScope(name), 1]))

/** The authorization of this id that began in this browser. Throws `link_invalid`. */
async function loadInteraction(
  db: Database,
  { id, cookieHeader, now }: { id: string | undefined; cookieHeader: string | undefined; now: Date },
): Promise<Interaction> {
  const isOwn = id !== undefined && parseCookie(cookieHeader ?? '')[INTERACTION_COOKIE] === id
  const interaction = isOwn ? await findInteraction(db, id, now) : undefined
  if (interaction && !interaction.isAnswered) return interaction
  const reason = isOwn ? 'authorization expired or answered' : 'authorization of another browser'
  throw new Problem('link_invalid', 'This authorization has ended, or began in another browser.', { reason })
}

const pathOf = ({ prompt, id }: Interaction) =>
  `${ENTRY}/${prompt === 'consent' ? 'consent' : 'sign-in'}?${new URLSearchParams({ id })}`

/**
 * The path of the authorization request from its beginning, with all its parameters, pushed ones too. A sign-in and a choice
 * of the account are asked for again, unless the person of `session` has just done that. A device begins with its code.
 */
function buildRestartPath(interaction: Interaction, session: SessionRecord | undefined): string {
  const { params, returnTo } = interaction
  if (new URL(returnTo).pathname.startsWith(`${PROVIDER_PATH}/device/`)) return `${PROVIDER_PATH}/device`
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const one of [value ?? []].flat()) if (name !== 'prompt') query.append(name, one)
  const prompts = typeof params.prompt === 'string' ? params.prompt.split(' ') : []
  const isDone = session !== undefined && isSignedInSince(interaction, session)
  const rest = isDone ? prompts.filter((one) => one !== 'login' && one !== 'select_account') : prompts
  if (rest.length > 0) query.set('prompt', rest.join(' '))
  return `${PROVIDER_PATH}/authorize?${query}`
}

/** Hands the sign-in of this browser to the provider, and leads on to the app. */
async function continueAs(
  deps: InteractionDeps,
  db: Database,
  input: {
    interaction: Interaction
    person: SignedInPerson
    session: SessionRecord
    acceptLanguage: string | undefined
  },
): Promise<PageOutcome> {
  const { interaction, person, session } = input
  await answerInteraction(db, interaction.id, buildLoginAnswer(interaction, person.userId, session))
  const texts = chooseTexts(interaction, input.acceptLanguage)
  const clientName = await findClientName(db, interaction, texts)
  const href = interaction.returnTo
  const page = buildPage({ brand: deps.brand, ...buildContinuePage({ texts, clientName, href }) })
  return {
    ...page,
    // A redirect would be checked against the form-action of the sign-in form that led here.
    headers: { ...page.headers, refresh: `0;url=${href}` },
    audit: { client: interaction.params.client_id },
    actor: { userId: person.userId, sessionId: person.sessionId, account: null },
  }
}

async function findClientName(db: Database, { params }: Interaction, { texts }: PageTexts): Promise<string> {
  return (await findClient(db, String(params.client_id)))?.name ?? texts['app.unnamed']
}

const chooseTexts = ({ params }: Interaction, acceptLanguage: string | undefined) =>
  choosePageTexts({ uiLocales: params.ui_locales, acceptLanguage })

const goTo = (location: string): RedirectOutcome => ({ kind: 'redirect', status: 303, location })

/** Begins an authorization again, for whoever is signed in in this browser by now. */
async function restart(db: Database, interaction: Interaction, { person }: Visitor): Promise<RedirectOutcome> {
  return goTo(buildRestartPath(interaction, person && (await loadSession(db, person.sessionId))))
}

/** The pages of an authorization: who one is, and what the app may do (docs/contract/oauth.md#consent). */
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
    {
      handle: async (_deps: InteractionDeps, { db, query, cookieHeader, now }) =>
        goTo(pathOf(await loadInteraction(db, { id: query.id, cookieHeader, now }))),
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
    {
      handle: async (_deps: InteractionDeps, { db, visitor, query, cookieHeader, now }) =>
        restart(db, await loadInteraction(db, { id: query.id, cookieHeader, now }), visitor),
    },
  ),
  definePage(
    {
      method: 'GET',
      path: `${ENTRY}/sign-in`,
      resource: 'oauth-page',
      action: 'sign-in',
      summary: 'Continue an authorization as the person of this browser',
      query: ['id'],
      writes: true,
    },
    {
      handle: async (deps: InteractionDeps, { db, visitor, query, cookieHeader, acceptLanguage, now }) => {
        const interaction = await loadInteraction(db, { id: query.id, cookieHeader, now })
        const { person, browserId } = visitor
        if (!person) return askToSignIn(visitor, pathOf(interaction))
        if (interaction.accountId !== null && interaction.accountId !== person.userId)
          return restart(db, interaction, visitor)
        const session = await loadSession(db, person.sessionId)
        const mustSignIn = mustSignInAgain(interaction, session)
        if (interaction.prompt === 'login' && !mustSignIn && isNeededPerson(interaction, person.userId))
          return continueAs(deps, db, { interaction, person, session, acceptLanguage })
        const texts = chooseTexts(interaction, acceptLanguage)
        const email = (await findActiveAccount(db, person.userId))?.email ?? ''
        const clientName = await findClientName(db, interaction, texts)
        const signInAgain = mustSignIn ? buildSignInUrl({ next: pathOf(interaction), again: '1' }) : null
        const view = { texts, authorizationId: interaction.id, browserId, email, clientName, signInAgain }
        return buildPage({ brand: deps.brand, ...buildAccountPage(deps, view) })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: `${ENTRY}/continue`,
      resource: 'oauth-page',
      action: 'continue',
      summary: 'Continue an authorization with the account that is signed in',
      fields: { id: ID_LIMIT },
    },
    {
      handle: async (deps: InteractionDeps, { db, visitor, form, cookieHeader, acceptLanguage, now }) => {
        const interaction = await loadInteraction(db, { id: form.id, cookieHeader, now })
        const { person } = visitor
        if (!person) return askToSignIn(visitor, pathOf(interaction))
        const session = await loadSession(db, person.sessionId)
        if (interaction.prompt === 'consent' || mustSignInAgain(interaction, session)) return goTo(pathOf(interaction))
        return continueAs(deps, db, { interaction, person, session, acceptLanguage })
      },
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
    {
      handle: async (deps: InteractionDeps, { db, visitor, form, cookieHeader, now }) => {
        const interaction = await loadInteraction(db, { id: form.id, cookieHeader, now })
        const { person } = visitor
        const ended = person
          ? await signOut(db, { caller: person, all: false, family: true, refreshToken: undefined, now })
          : []
        return {
          // The session of the provider ends with that of the browser, and with it what rests on it.
          ...goTo(buildSignInUrl({ next: `${RESTART}?${new URLSearchParams({ id: interaction.id })}` })),
          cookies: deps.cookies.signOut(),
          changed: ended.map((id) => ({ id, account: null })),
          actor: { userId: person?.userId ?? null, sessionId: person?.sessionId ?? null, account: null },
        }
      },
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
    {
      handle: async (deps: InteractionDeps, { db, visitor, query, cookieHeader, acceptLanguage, now }) => {
        const interaction = await loadInteraction(db, { id: query.id, cookieHeader, now })
        const { person, browserId } = visitor
        if (!person) return askToSignIn(visitor, pathOf(interaction))
        if (interaction.accountId !== person.userId) return restart(db, interaction, visitor)
        const clientId = String(interaction.params.client_id)
        const client = await findClient(db, clientId)
        if (!client) throw new Problem('link_invalid', 'The app is not registered any more.')
        const { redirect_uri: redirectUri } = interaction.params
        return buildPage({
          brand: deps.brand,
          ...buildConsentPage(deps, {
            texts: chooseTexts(interaction, acceptLanguage),
            authorizationId: interaction.id,
            browserId,
            client,
            redirectUri: typeof redirectUri === 'string' ? redirectUri : null,
            email: (await findActiveAccount(db, person.userId))?.email ?? '',
            asked: readAskedScopes(interaction),
            allowed: (await findGrantOf(db, person.userId, clientId))?.scopes,
          }),
        })
      },
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
    {
      handle: async (deps: InteractionDeps, { db, visitor, form, cookieHeader, requestId, now }) => {
        const interaction = await loadInteraction(db, { id: form.id, cookieHeader, now })
        const { person } = visitor
        if (!person) return askToSignIn(visitor, pathOf(interaction))
        const { decision } = form
        if (decision !== 'approve' && decision !== 'deny')
          return showProblem(deps, new Problem('validation_failed', 'decision: must be approve or deny'), requestId)
        const scopes = readAskedScopes(interaction).filter((name) => form[fieldOfScope(name)] === '1')
        const recorded = await decideConsent(deps, db, {
          authorizationId: interaction.id,
          isApproved: decision === 'approve',
          scopes,
          userId: person.userId,
          sessionId: person.sessionId,
          now,
        })
        const { grant, clientId, authorizeUrl } = recorded
        return {
          ...goTo(authorizeUrl),
          changed: [{ id: grant?.id ?? null, account: null, url: null }],
          actor: { userId: person.userId, sessionId: person.sessionId, account: null },
          audit: { decision, client: clientId, ...(grant && { scopes: grant.scopes }) },
        }
      },
    },
  ),
]
