import * as oauth from 'oauth4webapi'
import { type Answers, type OauthClient, type OauthFixture, readForm } from './oauth-service.ts'
import type { Visited, Visitor } from './visitor.ts'

/** Where an authorization ended: at the client, with what is needed to redeem it. */
export interface Begun {
  callback: string
  verifier: string
  state: string
  redirectUri: string
}

/** Tokens of a client. */
export interface Tokens {
  access_token: string
  refresh_token: string
  id_token?: string
  scope?: string
  token_type: string
}

/** Options of an authorization. */
export interface BeginOptions extends Answers {
  scope?: string
  parameters?: Record<string, string>
  isPushed?: boolean
  redirectUri?: string
}

/** One client at work: every request is made and judged by `oauth4webapi`. */
export interface Flow {
  as: oauth.AuthorizationServer
  client: oauth.Client
  begin(browser: Visitor, options?: BeginOptions): Promise<Begun>
  /** The URL of an authorization request, and what redeems its code. */
  prepare(options?: BeginOptions): Promise<{ url: string; verifier: string; state: string; redirectUri: string }>
  redeem(begun: Begun): Promise<Tokens>
  signIn(browser: Visitor, options?: BeginOptions): Promise<{ tokens: Tokens; begun: Begun }>
  refresh(token: string, fetchOptions?: Record<string, unknown>): Promise<Tokens>
  introspect(token: string): Promise<Record<string, unknown>>
  revoke(token: string): Promise<void>
  userinfo(token: string): Promise<Response>
  /** Sends a form of the page that a browser stands on. */
  submit(browser: Visitor, input: { page: Visited; action: string; fields?: Record<string, string> }): Promise<Visited>
}

const INSECURE = { [oauth.allowInsecureRequests]: true }

/** Builds the flow of a client; `issuer` and address may be those of another process. */
export async function openFlow(fixture: Pick<OauthFixture, 'issuer' | 'walk'>, registered: OauthClient): Promise<Flow> {
  const issuer = new URL(fixture.issuer)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, INSECURE))
  const client: oauth.Client = { client_id: registered.id }
  const auth = registered.secret === null ? oauth.None() : oauth.ClientSecretBasic(registered.secret)

  const prepare: Flow['prepare'] = async (options = {}) => {
    const verifier = oauth.generateRandomCodeVerifier()
    const state = oauth.generateRandomState()
    const redirectUri = options.redirectUri ?? registered.redirectUri
    const parameters = new URLSearchParams({
      client_id: registered.id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: options.scope ?? 'openid email offline_access contract:read',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      ...options.parameters,
    })
    const address = as.authorization_endpoint ?? ''
    if (!options.isPushed) return { url: `${address}?${parameters}`, verifier, state, redirectUri }
    const pushed = await oauth.processPushedAuthorizationResponse(
      as,
      client,
      await oauth.pushedAuthorizationRequest(as, client, auth, parameters, INSECURE),
    )
    const query = new URLSearchParams({ client_id: registered.id, request_uri: pushed.request_uri })
    return { url: `${address}?${query}`, verifier, state, redirectUri }
  }

  const begin: Flow['begin'] = async (browser, options = {}) => {
    const { url, ...kept } = await prepare(options)
    const end = await fixture.walk(browser, url, options)
    if (end.location === undefined) throw new Error(`the walk ended at ${end.url} (${end.status}): ${end.body}`)
    return { ...kept, callback: end.location }
  }

  const redeem: Flow['redeem'] = async ({ callback, verifier, state, redirectUri }) => {
    const parameters = oauth.validateAuthResponse(as, client, new URL(callback), state)
    const answer = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      auth,
      parameters,
      redirectUri,
      verifier,
      INSECURE,
    )
    return (await oauth.processAuthorizationCodeResponse(as, client, answer)) as unknown as Tokens
  }

  return {
    as,
    client,
    prepare,
    begin,
    redeem,
    signIn: async (browser, options) => {
      const begun = await begin(browser, options)
      return { begun, tokens: await redeem(begun) }
    },
    refresh: async (token) => {
      const answer = await oauth.refreshTokenGrantRequest(as, client, auth, token, INSECURE)
      return (await oauth.processRefreshTokenResponse(as, client, answer)) as unknown as Tokens
    },
    introspect: async (token) => {
      const answer = await oauth.introspectionRequest(as, client, auth, token, INSECURE)
      return { ...(await oauth.processIntrospectionResponse(as, client, answer)) }
    },
    revoke: async (token) => {
      await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, token, INSECURE))
    },
    userinfo: (token) => fetch(as.userinfo_endpoint ?? '', { headers: { authorization: `Bearer ${token}` } }),
    submit: (browser, { page, action, fields = {} }) =>
      browser.visit(new URL(action, page.url).href, {
        method: 'POST',
        form: { ...readForm(page.body, action), ...fields },
      }),
  }
}
