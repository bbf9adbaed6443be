import { type Begun, type Flow, openFlow, type Tokens } from '../harness/browser/oauth-flow.ts'
import type { OauthFixture } from '../harness/browser/oauth-service.ts'
import { type OauthClient, type OauthUser, openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visited, Visitor } from '../harness/browser/visitor.ts'
import { makeBreakable } from './breakable-provider.ts'
import { makeServerBreakable } from './breakable-server.ts'
import type { BreakSwitch } from './breakage.ts'

/** The redirect URI of the web client of an attack. */
export const WEB = 'https://app.example.com/callback'

/** An answer of the token endpoint and its neighbours. */
export interface Posted {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

/** The service, which can be broken, with what an attacker meets. */
export interface AttackFixture extends AsyncDisposable {
  fixture: OauthFixture
  state: BreakSwitch
  user: OauthUser
  client: OauthClient
  other: OauthClient
  flow: Flow
  otherFlow: Flow
  native: Flow
  /** A browser in which the user is signed in and has allowed the clients. */
  browser: Visitor
  /** Sends an authorization request with changed parameters; one that is undefined is left out. */
  ask(change?: Record<string, string | undefined>, options?: { extra?: string; flow?: Flow }): Promise<Visited>
  begin(): Promise<Begun>
  signIn(): Promise<Tokens>
  /** Posts a form to an endpoint, as the client unless another one is named. */
  post(path: string, form: Record<string, string> | string, options?: PostOptions): Promise<Posted>
}

/** Who posts: `secret` in place of the client's own. */
export interface PostOptions {
  as?: OauthClient
  secret?: string
  headers?: Record<string, string>
}

const OFFLINE = { prompt: 'consent' }

/** Starts the service with every breakage built in, and none of them on. */
export async function startAttackFixture(): Promise<AttackFixture> {
  const state: BreakSwitch = { on: undefined }
  const env = { OAUTH_REFRESH_REPEAT_SECONDS: '0' }
  const fixture = await startOauthFixture({ env, onProviderBuilt: (provider) => makeBreakable(provider, state) })
  makeServerBreakable(fixture.app.app.server.server, state)
  const [user, browser] = [await fixture.user(), openBrowser()]
  const client = await fixture.client({ redirect_uris: [WEB] })
  const other = await fixture.client({ name: 'Another app', redirect_uris: [WEB] })
  const uris = ['http://127.0.0.1/callback', 'https://app.example.com/native', 'com.example.app:/callback']
  const app = await fixture.client({ type: 'public', application_type: 'native', redirect_uris: uris })
  const [flow, otherFlow, native] = [
    await openFlow(fixture, client),
    await openFlow(fixture, other),
    await openFlow(fixture, app),
  ]
  for (const appFlow of [flow, otherFlow]) await appFlow.signIn(browser, { user, scope: 'openid email' })
  return {
    ...{ fixture, state, user, client, other, flow, otherFlow, native, browser },
    ask: async (change = {}, { extra = '', flow: asked = flow } = {}) => {
      const target = new URL((await asked.prepare({ scope: 'openid email' })).url)
      for (const [name, value] of Object.entries(change))
        if (value === undefined) target.searchParams.delete(name)
        else target.searchParams.set(name, value)
      return browser.visit(target.href + extra)
    },
    begin: () => flow.begin(browser, { user, parameters: OFFLINE }),
    signIn: async () => (await flow.signIn(browser, { user, parameters: OFFLINE })).tokens,
    post: async (path, form, { as = client, secret = as.secret ?? '', headers = {} } = {}) => {
      const authorization = `Basic ${Buffer.from(`${as.id}:${secret}`).toString('base64')}`
      const answer = await fetch(`${fixture.issuer}${path}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: typeof form === 'string' ? form : new URLSearchParams(form),
        redirect: 'manual',
      })
      const text = await answer.text()
      return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : {} }
    },
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  }
}

/** The form that redeems a code, with changed fields. */
export function redeemForm(begun: Begun, change: Record<string, string> = {}): Record<string, string> {
  return {
    grant_type: 'authorization_code',
    code: new URL(begun.callback).searchParams.get('code') ?? '',
    redirect_uri: begun.redirectUri,
    code_verifier: begun.verifier,
    ...change,
  }
}

/** The form that spends a refresh token. */
export const refreshForm = (token: string) => ({ grant_type: 'refresh_token', refresh_token: token })
