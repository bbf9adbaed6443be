import { createHash, createPublicKey, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type IssuerKey, makeKey, signParts } from '../../app/token-issuer.ts'
import { readEs256 } from '../provider/signed-token.ts'
import { askHook } from './access-token-hook.ts'
import { buildDirectory, type DirectoryRules, type SimulatedUser, type User } from './directory.ts'
import { buildOAuthServer, type OAuthServer } from './oauth-server.ts'
import { type AnswerUser, fail, type Reply, toVersion } from './reply.ts'

/** Lifetime of a flow of the simulator, in milliseconds, as Supabase Auth has it. */
const FLOW_LIFETIME_MS = 300_000

/** Lifetime of an access token, in seconds. */
const TOKEN_SECONDS = 3600

/** Faults of the simulator, and actions on behalf of an administrator. */
export type SimulatorFault =
  | 'down'
  | 'answers text'
  | 'bans after the callback'
  | 'bans before'
  | 'client token'
  | 'no identity'

interface Flow {
  provider: string
  redirectTo: string
  challenge: string | undefined
  expiresAtMs: number
  userId?: string
  code?: string
}

/** A server that behaves like Supabase Auth for social sign-in, its oddities included. */
export interface SupabaseSimulator extends AsyncDisposable {
  url: string
  user: SimulatedUser
  fault: SimulatorFault | undefined
  /** The settings of the server, as they are by default. */
  rules: DirectoryRules
  /** The key that a gateway in front of the server asks for; none without a gateway. */
  gatewayKey: string | undefined
  /** Providers that are off. */
  off: Set<string>
  /** The custom providers that an administrator has made there. */
  custom: Set<string>
  /** The key that signs its tokens. */
  key: IssuerKey
  /** Its OAuth server. */
  oauth: OAuthServer
  /** Sessions that are alive. */
  sessions: Set<string>
  /** The queries with which flows began. */
  begun: URLSearchParams[]
  /** Acts as the browser: opens the address, answers the provider's page; returns where the app is called. */
  browse(authorizeUrl: string): Promise<string>
}

/** Starts the simulator. `now` is the time of its flows and tokens. */
export async function startSupabaseSimulator(now: () => number): Promise<SupabaseSimulator> {
  const flows = new Map<string, Flow>()
  const owners = new Map<string, string>()
  const refreshTokens = new Map<string, { userId: string; session: string; next: object | undefined }>()
  const key = makeKey('simulator-key')
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const iso = () => new Date(now()).toISOString()
  const directory = buildDirectory(() => simulator.rules, iso)

  const simulator: SupabaseSimulator = {
    url,
    user: { sub: '1', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' },
    fault: undefined,
    rules: { autoConfirms: false, takesMissingAddress: false, takesNobodyNew: false },
    gatewayKey: undefined,
    off: new Set(),
    key,
    oauth: buildOAuthServer({
      url: () => url,
      now,
      withUser: (token, answer) => withUser(token, answer),
      findUser: (id) => directory.find(id),
      sign: (claims) => signToken(claims),
      describeMetadata: (user) => ({ app_metadata: describe(user).app_metadata, user_metadata: user.metadata }),
      sessions: () => simulator.sessions,
      keys: () => ({ keys: [key.jwk] }),
    }),
    custom: new Set(['custom:acme-sso']),
    sessions: new Set(),
    begun: [],
    browse: async (authorizeUrl) => {
      let at = authorizeUrl
      while (at.startsWith(url)) {
        const answer = await fetch(at, { redirect: 'manual' })
        const next = answer.headers.get('location')
        if (next === null) throw new Error(`Supabase Auth answered ${answer.status}: ${await answer.text()}`)
        at = next
      }
      return at
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function serve(request: IncomingMessage, response: ServerResponse) {
    const at = new URL(request.url ?? '/', url)
    const body = await text(request)
    const reply = await decide(request, at, body)
    const isVersioned = request.headers['x-supabase-api-version'] === '2024-01-01'
    const shown = isVersioned ? toVersion(reply.body) : reply.body
    const isText = typeof shown === 'string' || simulator.fault === 'answers text'
    response.writeHead(reply.status, {
      ...(shown !== undefined && { 'content-type': isText ? 'text/plain' : 'application/json' }),
      ...(isVersioned && { 'x-supabase-api-version': '2024-01-01' }),
      ...reply.headers,
    })
    response.end(shown === undefined ? undefined : isText ? String(shown) : JSON.stringify(shown))
  }

  async function decide(request: IncomingMessage, at: URL, body: string): Promise<Reply> {
    if (simulator.fault === 'down') return { status: 503, body: 'upstream unavailable' }
    return (
      checkGateway(request, at) ?? (await simulator.oauth.route(request, at, body)) ?? (await route(request, at, body))
    )
  }

  /** A gateway asks for a user agent, for its key but for what browsers open, and takes no bearer that is no JWT. */
  function checkGateway({ headers }: IncomingMessage, { pathname }: URL): Reply | undefined {
    if (simulator.gatewayKey === undefined) return undefined
    if (headers['user-agent'] === undefined) return { status: 403, body: 'error code: 1010' }
    const bearer = headers.authorization?.replace(/^Bearer /, '')
    if (bearer !== undefined && bearer.split('.').length !== 3)
      return { status: 401, body: { message: 'Invalid JWT', hint: 'Use the apikey header for keys.' } }
    const isOpen = ['/authorize', '/callback', '/provider-page', '/.well-known/jwks.json'].includes(pathname)
    if (isOpen || headers.apikey === simulator.gatewayKey) return undefined
    return { status: 401, body: { message: 'No API key found in request' } }
  }

  async function route(request: IncomingMessage, at: URL, body: string): Promise<Reply> {
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    switch (`${request.method} ${at.pathname}`) {
      case 'GET /health':
        return { status: 200, body: { version: 'v2.196.0', name: 'GoTrue' } }
      case 'GET /settings':
        return { status: 200, body: describeSettings() }
      case 'GET /authorize':
        return authorize(at.searchParams)
      case 'GET /provider-page':
        return answerProvider(at.searchParams)
      case 'GET /callback':
        return callBack(at.searchParams)
      case 'POST /token':
        return issue(at.searchParams.get('grant_type') ?? '', body)
      case 'GET /user':
        return withUser(bearer, (user) => ({ status: 200, body: describe(user) }))
      case 'POST /logout':
        return withUser(bearer, (user, session) => signOut(user, session, at.searchParams.get('scope') ?? 'global'))
      default:
        return { status: 404, body: '404 page not found\n' }
    }
  }

  /** Custom providers are not part of the settings. */
  function describeSettings() {
    const external = Object.fromEntries(PROVIDERS.map((name) => [name, !simulator.off.has(name)]))
    const { autoConfirms: mailer_autoconfirm, takesNobodyNew: disable_signup } = simulator.rules
    return { external, disable_signup, mailer_autoconfirm, phone_autoconfirm: false, saml_enabled: false }
  }

  function authorize(query: URLSearchParams): Reply {
    const provider = (query.get('provider') ?? '').toLowerCase()
    const isKnown = PROVIDERS.includes(provider) || simulator.custom.has(provider)
    if (!isKnown || simulator.off.has(provider))
      return fail(400, 'validation_failed', 'Unsupported provider: provider is not enabled')
    const challenge = query.get('code_challenge') ?? ''
    if ((challenge === '') !== ((query.get('code_challenge_method') ?? '') === ''))
      return fail(400, 'validation_failed', 'PKCE flow requires code_challenge_method and code_challenge')
    if (challenge !== '' && !['s256', 'plain'].includes((query.get('code_challenge_method') ?? '').toLowerCase()))
      return fail(400, 'validation_failed', 'Invalid code challenge method')
    if (challenge !== '' && !/^[A-Za-z0-9._~-]{43,128}$/.test(challenge))
      return fail(400, 'validation_failed', 'code challenge has to be between 43 and 128 characters')
    const state = randomUUID()
    simulator.begun.push(query)
    flows.set(state, {
      provider,
      redirectTo: query.get('redirect_to') ?? `${url}/site`,
      challenge: challenge === '' ? undefined : challenge,
      expiresAtMs: now() + FLOW_LIFETIME_MS,
    })
    // Parameters that the server does not know are passed to the provider.
    const passed = new URLSearchParams({ state })
    for (const name of ['redirect_to', 'prompt', 'login_hint'])
      if (query.has(name)) passed.set(name, query.get(name) ?? '')
    return redirect(`${url}/provider-page?${passed}`)
  }

  function answerProvider(query: URLSearchParams): Reply {
    const state = query.get('state') ?? ''
    return redirect(
      `${url}/callback?state=${state}&${simulator.user.denies ? 'error=access_denied&error_description=The+user+denied' : 'code=at-the-provider'}`,
    )
  }

  async function callBack(query: URLSearchParams): Promise<Reply> {
    const state = query.get('state') ?? ''
    const flow = flows.get(state)
    if (state === '') return toSite('bad_oauth_callback', 'OAuth state parameter missing')
    if (!flow || flow.expiresAtMs <= now()) return toSite('bad_oauth_state', 'OAuth state not found or expired')
    if (flow.userId !== undefined) return toSite('flow_state_already_used', 'State has already been used')
    const error = query.get('error')
    // A provider's own error is passed on without a code.
    if (error) return backWith(flow, { error, error_description: query.get('error_description') ?? '' })
    const found = directory.signIn(flow.provider, simulator.user)
    if ('user' in found && simulator.fault === 'bans before') found.user.isBanned = true
    if (!('user' in found)) return backWith(flow, toCallbackError(found))
    const { user } = found
    if (user.isBanned)
      return backWith(flow, toCallbackError({ status: 403, code: 'user_banned', message: 'User is banned' }))
    flow.userId = user.id
    if (flow.challenge !== undefined) {
      flow.code = randomUUID()
      return redirect(addQuery(flow.redirectTo, { code: flow.code }))
    }
    flows.delete(state)
    const session = await openSession(user)
    if ('status' in session) return backWith(flow, { error: 'server_error', error_description: '403: refused' })
    const { access_token, refresh_token, expires_at } = session
    const fragment = { access_token, expires_at: String(expires_at), expires_in: String(TOKEN_SECONDS) }
    const rest = { provider_token: 'of-the-provider', refresh_token, sb: '', token_type: 'bearer' }
    return redirect(`${flow.redirectTo}#${new URLSearchParams({ ...fragment, ...rest })}`)
  }

  /** Errors of the state go to the site, in the query alone. */
  function toSite(code: string, description: string): Reply {
    const query = { error: 'invalid_request', error_code: code, error_description: description }
    return { status: 303, headers: { location: addQuery(`${url}/site`, query) } }
  }

  /** Other errors go back to the app, in the query and in the fragment, where `%` is encoded twice. */
  function backWith(flow: Flow, error: Record<string, string>): Reply {
    const fragment = new URLSearchParams({ ...error, sb: '' }).toString().replaceAll('%', '%25')
    return redirect(`${addQuery(flow.redirectTo, error)}#${fragment}`)
  }

  async function issue(grant: string, body: string): Promise<Reply> {
    let given: Record<string, string>
    try {
      given = JSON.parse(body) as Record<string, string>
    } catch {
      return fail(400, 'bad_json', 'Could not parse request body as JSON')
    }
    if (grant === 'pkce') return redeem(given.auth_code ?? '', given.code_verifier ?? '')
    if (grant === 'refresh_token') return refresh(given.refresh_token ?? '')
    return fail(400, 'invalid_credentials', 'unsupported_grant_type')
  }

  async function redeem(code: string, verifier: string): Promise<Reply> {
    if (code === '' || verifier === '')
      return fail(400, 'validation_failed', 'both auth code and code verifier should be non-empty')
    const [state, flow] = [...flows].find(([, flow]) => flow.code === code) ?? []
    if (!flow || state === undefined)
      return fail(404, 'flow_state_not_found', 'invalid flow state, no valid flow state found')
    if (flow.expiresAtMs <= now()) return fail(422, 'flow_state_expired', 'invalid flow state, flow state has expired')
    // The code is consumed only by success.
    if (createHash('sha256').update(verifier).digest('base64url') !== flow.challenge)
      return fail(400, 'bad_code_verifier', 'code challenge does not match previously saved code verifier')
    const user = directory.find(flow.userId ?? '')!
    const session = await openSession(user)
    if ('status' in session) return session
    flows.delete(state)
    if (simulator.fault === 'bans after the callback') user.isBanned = true
    return { status: 200, body: { ...session, provider_token: 'of-the-provider' } }
  }

  async function refresh(token: string): Promise<Reply> {
    if (simulator.oauth.hasRefreshToken(token))
      return { status: 400, body: { error: 'invalid_client', error_description: 'client authentication is required' } }
    const known = refreshTokens.get(token)
    if (!known) return fail(400, 'refresh_token_not_found', 'Invalid Refresh Token: Refresh Token Not Found')
    // The parent of the active token gets that one again.
    const active = known.next && isActive(known.next)
    if (known.next && !active) return fail(400, 'refresh_token_already_used', 'Invalid Refresh Token: Already Used')
    const user = directory.find(known.userId)!
    if (user.isBanned) return fail(400, 'user_banned', 'Invalid Refresh Token: User Banned')
    if (known.next) return { status: 200, body: known.next }
    const session = await openSession(user, { id: known.session, method: 'token_refresh' })
    if ('status' in session) return session
    known.next = session
    return { status: 200, body: session }
  }

  /** Whether the refresh token of an answer was not used yet. */
  const isActive = (answer: object) => {
    const refreshToken = refreshTokens.get((answer as { refresh_token: string }).refresh_token)
    return refreshToken !== undefined && refreshToken.next === undefined
  }

  /** The tokens of a session, or the refusal of the hook. */
  async function openSession(user: User, { id = randomUUID() as string, method = 'oauth' } = {}) {
    const issuedAt = Math.floor(now() / 1000)
    const claims = {
      iss: url,
      sub: user.id,
      aud: 'authenticated',
      iat: issuedAt,
      exp: issuedAt + TOKEN_SECONDS,
      email: user.email,
      phone: '',
      app_metadata: describe(user).app_metadata,
      user_metadata: user.metadata,
      role: 'authenticated',
      aal: 'aal1',
      amr: [{ method: 'oauth', timestamp: issuedAt }],
      session_id: id,
      is_anonymous: false,
      ...(simulator.fault === 'client token' && { client_id: 'some-client', scope: 'openid' }),
    }
    const decided = await askHook(simulator.oauth.hook, { userId: user.id, claims, method, nowMs: now() })
    if ('error' in decided) return fail(decided.error.http_code, 'unknown', decided.error.message)
    simulator.sessions.add(id)
    owners.set(id, user.id)
    const refreshToken = randomBytes(6).toString('hex')
    refreshTokens.set(refreshToken, { userId: user.id, session: id, next: undefined })
    return {
      access_token: signToken(decided.claims),
      token_type: 'bearer',
      expires_in: TOKEN_SECONDS,
      expires_at: issuedAt + TOKEN_SECONDS,
      refresh_token: refreshToken,
      user: describe(user),
    }
  }

  function signOut(user: User, session: string, scope: string): Reply {
    if (!['global', 'local', 'others'].includes(scope))
      return fail(400, 'validation_failed', `Unsupported logout scope "${scope}"`)
    const own = [...owners].filter(([, owner]) => owner === user.id).map(([id]) => id)
    const ended = scope === 'local' ? [session] : own.filter((id) => scope === 'global' || id !== session)
    for (const id of ended) simulator.sessions.delete(id)
    for (const [token, refreshToken] of refreshTokens)
      if (ended.includes(refreshToken.session)) refreshTokens.delete(token)
    return { status: 204 }
  }

  function signToken(claims: object): string {
    return signParts({ alg: 'ES256', typ: 'JWT', kid: key.jwk.kid }, claims, key)
  }

  function withUser(token: string, answer: AnswerUser): Reply {
    if (token === '') return fail(401, 'no_authorization', 'This endpoint requires a valid Bearer token')
    const claims = readEs256(token, createPublicKey(key.privateKey))
    if (!claims || Number(claims.exp) * 1000 <= now())
      return fail(403, 'bad_jwt', 'invalid JWT: unable to parse or verify signature')
    const session = String(claims.session_id)
    if (!simulator.sessions.has(session))
      return fail(403, 'session_not_found', 'Session from session_id claim in JWT does not exist')
    const user = directory.find(String(claims.sub))
    if (!user) return fail(403, 'user_not_found', 'User from sub claim in JWT does not exist')
    if (user.isBanned) return fail(403, 'user_banned', 'User is banned')
    return answer(user, session)
  }

  function describe({ id, email, identities, metadata, isConfirmed }: User) {
    return {
      id,
      aud: 'authenticated',
      role: 'authenticated',
      email,
      ...(isConfirmed && { email_confirmed_at: iso(), confirmed_at: iso() }),
      phone: '',
      last_sign_in_at: iso(),
      app_metadata: { provider: identities[0]?.provider, providers: identities.map(({ provider }) => provider) },
      user_metadata: metadata,
      identities: simulator.fault === 'no identity' ? [] : identities,
      created_at: iso(),
      updated_at: iso(),
      is_anonymous: false,
    }
  }

  return simulator
}

/** The providers of the settings that the simulator knows. */
const PROVIDERS = ['apple', 'azure', 'discord', 'facebook', 'github', 'gitlab', 'google', 'keycloak', 'linkedin_oidc']

function redirect(location: string): Reply {
  return { status: 302, headers: { location } }
}

function addQuery(url: string, parameters: Record<string, string>): string {
  const target = new URL(url)
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value)
  return target.href
}

/** The parameters of a callback that failed at the server. */
function toCallbackError(error: { status: number; code: string; message: string }): Record<string, string> {
  const isDenial = ['signup_disabled', 'user_banned', 'provider_email_needs_verification'].includes(error.code)
  return {
    error: isDenial ? 'access_denied' : 'server_error',
    error_code: error.code,
    error_description: error.message,
  }
}
