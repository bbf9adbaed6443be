import { chooseRequestTexts } from '../../base/language/request-language.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { Type } from '../../http/shape/schema-type.ts'
import type { Brand } from '../pages/brand/brand.ts'
import { NO_STORE, readHeader } from '../session/session.routes.ts'
import { buildLoginOutcome } from '../sign-in/outcome/login-outcome.ts'
import { LoginPayload, toLoginPayload } from '../sign-in/outcome/login-payload.schema.ts'
import { buildBridgePage } from './bridge-page.ts'
import { type CompletionDeps, completeFlow, exchangeLoginCode } from './completion.ts'
import {
  addToQuery,
  redirectOnWeb,
  redirectProven,
  redirectWithCode,
  redirectWithTokens,
  refuseSignIn,
} from './completion-answer.ts'
import { nameProvider } from './provider/provider-button.ts'
import { buildRefusal } from './refusal-problem.ts'
import {
  CallbackForm,
  CallbackQuery,
  ExchangeCodeBody,
  FlowStart,
  ProviderParams,
  StartQuery,
} from './social-login.schema.ts'
import {
  beginFlow,
  buildCallbackUrl,
  type FlowBrowser,
  type FlowDeps,
  finishFlow,
  inspectFlow,
  keepFlow,
  loadEngine,
  loadLabel,
  takePostedForm,
} from './social-login.ts'
import { type ContinuationDeps, continueOnWeb } from './web-continuation.ts'

/** Dependencies of social login. */
export interface SocialLoginDeps extends FlowDeps, CompletionDeps, ContinuationDeps {
  brand: Brand
}

const PATH = '/api/v3/auth/login/oauth/{provider}'

type Headers = Record<string, string | string[] | undefined>

/** Whether a request accepts a media type by name; the case of names does not matter (RFC 9110 section 8.3.1). */
const accepts = (headers: Headers, type: string) => readHeader(headers, 'accept')?.toLowerCase().includes(type) === true

/** Whether the answer is shown by a browser: it opens pages with `text/html`, and scripts ask for JSON. */
const wantsPage = (headers: Headers) => accepts(headers, 'text/html')

const wantsJson = (headers: Headers, format: string | undefined) =>
  format === 'json' || (accepts(headers, 'application/json') && !wantsPage(headers))

const readCookies = (headers: Headers) => readHeader(headers, 'cookie') ?? undefined

/** The browser that a flow is bound to. Null for JSON that no page of ours fetches: an app has another browser. */
function findFlowBrowser(headers: Headers, isJson: boolean): FlowBrowser | null {
  if (isJson && readHeader(headers, 'sec-fetch-site') !== 'same-origin') return null
  return { cookieHeader: readCookies(headers) }
}

const OF_LOGIN = { resource: 'login', accountScope: 'none', access: 'public', data: Type.String() } as const

/** Sign-in with a provider (docs/contract/social-login.md). */
export const socialLoginRoutes: Routes<SocialLoginDeps> = [
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'GET',
      path: PATH,
      action: 'oauth-start',
      event: 'none',
      page: 'asked',
      writes: true,
      strictRateLimit: true,
      summary: 'Begin a sign-in with a provider',
      description:
        'Redirects to the provider. With `format=json` or `Accept: application/json` the address of the provider is in the answer.',
      params: ProviderParams,
      query: StartQuery,
      data: FlowStart,
      redirect: { statuses: [302], description: 'To the provider.' },
      problems: ['provider_unknown', 'redirect_url_not_allowed', 'rate_limited'],
    },
    {
      row: {
        find: (deps: SocialLoginDeps, { db, params }) => loadEngine(deps, db, params.provider),
        neededBy: 'validation',
      },
      prepare: async (deps, { db, params, query, headers, now }) => {
        const isJson = wantsJson(headers, query.format)
        const browser = findFlowBrowser(headers, isJson)
        const flow = { provider: params.provider, redirectUrl: query.redirect_url, linkTo: null, browser, now }
        const begun = await beginFlow(deps, db, { ...flow, codeChallenge: query.code_challenge ?? null })
        return { ...begun, isJson }
      },
      handle: async (_deps, { db, params, prepared, now }) => {
        await keepFlow(db, prepared, now)
        const { redirectUrl, isJson, cookies } = prepared
        const facts = { cookies, headers: NO_STORE, audit: { provider: params.provider } }
        if (isJson) return { ...facts, data: { redirectUrl }, message: 'Continue at the provider.' }
        return { ...facts, kind: 'redirect', location: redirectUrl }
      },
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'GET',
      path: `${PATH}/callback`,
      action: 'oauth-callback',
      event: 'none',
      page: true,
      writes: true,
      summary: 'The bridge page, to which a provider sends the browser',
      description: 'Reads the code of the query or the tokens of the fragment, and continues at callback-redirect.',
      params: ProviderParams,
      query: CallbackQuery,
      media: { 'text/html': Type.String() },
      redirect: { statuses: [302], description: 'To a deep link, with the error of the provider.' },
      problems: ['provider_unknown', 'social_login_failed', 'email_required', 'email_not_verified'],
    },
    {
      prepare: async (deps: SocialLoginDeps, { db, params, query, headers, now }) => {
        const { provider } = params
        const label = await loadLabel(deps, db, provider)
        if ([query.state, query.code, query.error].every((value) => value === undefined)) return { label }
        const callback = { provider, state: query.state, cookies: readCookies(headers), now }
        const found = await inspectFlow(deps, db, callback)
        if (!('reason' in found) && query.error === undefined) return { found, label }
        const { error, error_code: errorCode, error_description: errorDescription, iss } = query
        const parameters = { error, errorCode, errorDescription, iss }
        return { finished: await finishFlow(deps, db, { ...callback, parameters }) }
      },
      handle: async (deps, { db, params, query, prepared, address, headers, requestId, trace, now }) => {
        const { provider } = params
        const { found, label, finished } = prepared
        if (!finished) {
          const texts = chooseRequestTexts(headers)
          const next = `${buildCallbackUrl('', provider)}-redirect`
          return buildBridgePage({
            brand: deps.brand,
            texts,
            flow: found?.flow,
            label: label ? nameProvider(texts, label) : provider,
            next,
            parameters: query,
          })
        }
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const completion = await completeFlow(deps, db, { finished, origin, trace, now })
        if (completion.kind !== 'refused') throw new Error('an error of a provider completes no sign-in')
        const texts = chooseRequestTexts(headers)
        return refuseSignIn(completion, { provider, brand: deps.brand, requestId, texts, wantsPage: true })
      },
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'POST',
      path: `${PATH}/callback`,
      action: 'oauth-form-callback',
      event: 'none',
      page: true,
      takesForm: true,
      summary: 'The callback of a provider that posts its answer',
      description:
        'The post of another site carries no cookie, so the browser is redirected to the same path by GET, where its cookie proves that it began the sign-in.',
      params: ProviderParams,
      body: CallbackForm,
      media: { 'text/html': Type.String() },
      redirect: { statuses: [303], description: 'To the bridge page.' },
      problems: ['provider_unknown'],
    },
    async (deps: SocialLoginDeps, { db, params, body, now }) => {
      const { provider } = params
      const { state, code, iss, error, user } = body
      await takePostedForm(deps, db, { provider, state, user, now })
      const query = Object.entries({ state, code, iss, error }).flatMap(([key, value]) => (value ? [[key, value]] : []))
      const location = addToQuery(buildCallbackUrl(deps.baseUrl(), provider), Object.fromEntries(query))
      return { kind: 'redirect', status: 303, location, headers: NO_STORE, audit: { provider } }
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'GET',
      path: `${PATH}/callback-redirect`,
      action: 'oauth',
      page: 'asked',
      writes: true,
      strictRateLimit: true,
      summary: 'Complete a sign-in with a provider',
      description:
        'For an http or https `redirect_url` the login payload; for a deep link a redirect to it with the tokens, or with a one-time code when the start had a `code_challenge`. A user who is new gets a profile.',
      params: ProviderParams,
      query: CallbackQuery,
      data: LoginPayload,
      redirect: {
        statuses: [302],
        description: 'To the deep link with tokens, a code or an error; a browser without scripts to the app.',
      },
      problems: [
        'connection_required',
        'provider_unknown',
        'social_login_failed',
        'email_required',
        'email_not_verified',
        'identity_not_linked',
      ],
    },
    {
      row: {
        find: (deps: SocialLoginDeps, { db, params }) => loadEngine(deps, db, params.provider),
        neededBy: 'validation',
      },
      prepare: async (deps, { db, params, query, headers, now }) => {
        const cookies = readCookies(headers)
        const { state, code, iss, error, error_code: errorCode, error_description: errorDescription } = query
        const parameters = { code, iss, error, errorCode, errorDescription, accessToken: query.access_token }
        return finishFlow(deps, db, { provider: params.provider, state, cookies, parameters, now })
      },
      handle: async (deps, { db, params, headers, address, requestId, trace, now, prepared }) => {
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const completion = await completeFlow(deps, db, { finished: prepared, origin, trace, now })
        const { provider } = params
        if (completion.kind === 'refused')
          return refuseSignIn(completion, {
            provider,
            brand: deps.brand,
            requestId,
            texts: chooseRequestTexts(headers),
            wantsPage: wantsPage(headers),
          })
        if (completion.kind === 'code') return redirectWithCode(completion)
        if (completion.kind === 'proven') return redirectProven(completion)
        const { flow, signIn } = completion
        if (flow.isDeepLink) return redirectWithTokens(flow, signIn)
        const continuation = await continueOnWeb(deps, db, { flow, signIn, now })
        const redirect = redirectOnWeb(flow, signIn, continuation)
        if (wantsPage(headers)) return redirect
        const { kind: _kind, location, ...facts } = redirect
        return { ...facts, data: { ...toLoginPayload(signIn), redirect_url: location }, message: 'Signed in.' }
      },
    },
  ),
  defineRoute(
    {
      ...OF_LOGIN,
      method: 'POST',
      path: '/api/v3/auth/login/code',
      action: 'code',
      strictRateLimit: true,
      summary: 'Exchange the one-time code of a deep link for tokens',
      description: 'The code is valid for 60 seconds and once, also when the exchange fails.',
      body: ExchangeCodeBody,
      data: LoginPayload,
      problems: ['social_login_failed', 'connection_required'],
    },
    async (deps: SocialLoginDeps, { db, body, address, headers, now }) => {
      const origin = { address, userAgent: readHeader(headers, 'user-agent') }
      const exchange = { code: body.code, codeVerifier: body.code_verifier, origin, now }
      const result = await exchangeLoginCode(deps, db, exchange)
      if (result.kind === 'refused') {
        const actor = { userId: result.userId, sessionId: null, account: null }
        return { kind: 'refusal', problem: buildRefusal(result.reason), actor }
      }
      return buildLoginOutcome(result.signIn)
    },
  ),
]
