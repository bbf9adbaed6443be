import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { askHook, type SimulatedHook } from './access-token-hook.ts'
import type { User } from './directory.ts'
import { type AnswerUser, fail, type Reply } from './reply.ts'

/** Lifetime of an authorization and its code, in milliseconds. */
const AUTHORIZATION_MS = 600_000

const SCOPES = ['openid', 'profile', 'email', 'phone', 'offline_access']

/** A registered app. */
export interface SimulatedClient {
  client_id: string
  client_secret: string
  client_name: string
  redirect_uris: string[]
}

interface Authorization {
  id: string
  client: SimulatedClient
  redirectUri: string
  scope: string
  state: string | null
  challenge: string
  nonce: string | null
  expiresAtMs: number
  status: 'pending' | 'approved' | 'denied'
  userId?: string
  code?: string | undefined
}

interface Grant {
  userId: string
  clientId: string
  scope: string
  grantedAt: string
}

/** The OAuth server of the simulator. */
export interface OAuthServer {
  /** Where a browser is sent for consent, with `authorization_id`. */
  consentUrl: string
  hook: SimulatedHook | undefined
  /** How often an authorization was decided, or tried to be. */
  decisions: number
  /** Registers an app, as an administrator does. */
  register(redirectUri: string, name?: string): SimulatedClient
  /** Whether a refresh token is one of an app. */
  hasRefreshToken(token: string): boolean
  /** Serves what belongs to it; undefined for all other paths. */
  route(request: IncomingMessage, at: URL, body: string): Promise<Reply | undefined>
}

interface OAuthServerParts {
  url: () => string
  now: () => number
  withUser: (token: string, answer: AnswerUser) => Reply
  findUser: (id: string) => User | undefined
  sign: (claims: object) => string
  /** The claims about a user that every access token has. */
  describeMetadata: (user: User) => { app_metadata: object; user_metadata: object }
  sessions: () => Set<string>
  keys: () => object
}

/** An error of the token endpoint: another shape, without the header. */
const refused = (error: string, error_description: string): Reply => ({
  status: 400,
  body: { error, error_description },
})

/** Builds the OAuth 2.1 server of Supabase Auth, its oddities included. */
export function buildOAuthServer(parts: OAuthServerParts): OAuthServer {
  const { url, now, withUser, sign } = parts
  const clients = new Map<string, SimulatedClient>()
  const authorizations = new Map<string, Authorization>()
  const refreshTokens = new Map<string, { userId: string; client: string; scope: string; session: string }>()
  const sessions = new Map<string, { userId: string; client: string; beganAt: number }>()
  let grants: Grant[] = []

  const server: OAuthServer = {
    consentUrl: 'https://site.example.test/oauth/consent',
    hook: undefined,
    decisions: 0,
    register: (redirectUri, name = 'An app') => {
      const client = {
        client_id: randomUUID(),
        client_secret: randomBytes(16).toString('hex'),
        client_name: name,
        redirect_uris: [redirectUri],
      }
      clients.set(client.client_id, client)
      return client
    },
    hasRefreshToken: (token) => refreshTokens.has(token),
    route: async (request, at, body) => {
      const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
      const id = /^\/oauth\/authorizations\/([A-Za-z0-9]+)(\/consent)?$/.exec(at.pathname)
      if (id && request.method === 'GET') return withUser(bearer, (user) => showAuthorization(id[1] ?? '', user))
      if (id?.[2] && request.method === 'POST')
        return withUser(bearer, (user) => decide(id[1] ?? '', user, JSON.parse(body).action))
      switch (`${request.method} ${at.pathname}`) {
        case 'GET /.well-known/jwks.json':
          return { status: 200, body: parts.keys(), headers: { 'cache-control': 'public, max-age=600' } }
        case 'GET /oauth/authorize':
          return authorize(at.searchParams)
        case 'POST /oauth/token':
          return issue(new URLSearchParams(body))
        case 'GET /user/oauth/grants':
          return withUser(bearer, (user) => ({ status: 200, body: grants.filter(isOf(user)).map(showGrant) }))
        case 'DELETE /user/oauth/grants':
          return withUser(bearer, (user) => revoke(user, at.searchParams.get('client_id') ?? ''))
        default:
          return undefined
      }
    },
  }

  const isOf = (user: User) => (grant: Grant) => grant.userId === user.id

  function showGrant({ clientId, scope, grantedAt }: Grant) {
    const { client_id, client_name } = clients.get(clientId)!
    return { client: { id: client_id, name: client_name }, scopes: scope.split(' '), granted_at: grantedAt }
  }

  function authorize(query: URLSearchParams): Reply {
    const client = clients.get(query.get('client_id') ?? '')
    const redirectUri = query.get('redirect_uri') ?? ''
    if (!client) return fail(400, 'oauth_client_not_found', 'client not found')
    if (!client.redirect_uris.includes(redirectUri)) return fail(400, 'validation_failed', 'invalid redirect_uri')
    const scope = query.get('scope') ?? 'email'
    const state = query.get('state')
    const refuse = (error_description: string) =>
      backTo(redirectUri, { error: 'invalid_request', error_description, ...(state !== null && { state }) })
    if (scope.split(' ').some((part) => !SCOPES.includes(part))) return refuse('unsupported scope')
    const [challenge, method] = [query.get('code_challenge') ?? '', query.get('code_challenge_method') ?? '']
    if (challenge === '' || method === '') return refuse('PKCE flow requires code_challenge_method and code_challenge')
    const authorization: Authorization = {
      id: randomBytes(16).toString('hex'),
      client,
      redirectUri,
      scope,
      state,
      challenge,
      nonce: query.get('nonce'),
      expiresAtMs: now() + AUTHORIZATION_MS,
      status: 'pending',
    }
    authorizations.set(authorization.id, authorization)
    return { status: 302, headers: { location: `${server.consentUrl}?authorization_id=${authorization.id}` } }
  }

  const backTo = (redirectUri: string, query: Record<string, string>): Reply => ({
    status: 302,
    headers: { location: `${redirectUri}?${new URLSearchParams(query)}` },
  })

  /** The first user who reads an authorization owns it. An earlier consent that covers the scopes approves at once. */
  function showAuthorization(id: string, user: User): Reply {
    const authorization = authorizations.get(id)
    if (!authorization || authorization.expiresAtMs <= now() || (authorization.userId ?? user.id) !== user.id)
      return fail(404, 'oauth_authorization_not_found', 'authorization not found')
    if (authorization.status !== 'pending')
      return fail(400, 'validation_failed', 'authorization request is not pending')
    authorization.userId = user.id
    const earlier = grants.find((grant) => isOf(user)(grant) && grant.clientId === authorization.client.client_id)
    const isCovered =
      earlier && authorization.scope.split(' ').every((scope) => earlier.scope.split(' ').includes(scope))
    if (isCovered) return { status: 200, body: { redirect_url: approve(authorization) } }
    const { client_id, client_name } = authorization.client
    return {
      status: 200,
      body: {
        authorization_id: id,
        redirect_uri: authorization.redirectUri,
        // Members without a value are left out.
        client: { id: client_id, ...(client_name !== '' && { name: client_name }) },
        user: { id: user.id, email: user.email },
        scope: authorization.scope,
      },
    }
  }

  function approve(authorization: Authorization): string {
    authorization.status = 'approved'
    authorization.code = randomUUID()
    return `${authorization.redirectUri}?${new URLSearchParams({ code: authorization.code, ...(authorization.state && { state: authorization.state }) })}`
  }

  function decide(id: string, user: User, action: string): Reply {
    server.decisions += 1
    if (action !== 'approve' && action !== 'deny')
      return fail(400, 'validation_failed', "action must be 'approve' or 'deny'")
    const authorization = authorizations.get(id)
    // Consent before the details were read finds no owner.
    if (!authorization || authorization.userId !== user.id)
      return fail(404, 'oauth_authorization_not_found', 'authorization not found')
    if (authorization.status !== 'pending')
      return fail(400, 'validation_failed', 'authorization request is not pending')
    if (action === 'approve') {
      const clientId = authorization.client.client_id
      grants = grants.filter((grant) => !(isOf(user)(grant) && grant.clientId === clientId))
      grants.push({ userId: user.id, clientId, scope: authorization.scope, grantedAt: new Date(now()).toISOString() })
      return { status: 200, body: { redirect_url: approve(authorization) } }
    }
    authorization.status = 'denied'
    const error = { error: 'access_denied', error_description: 'User denied the request' }
    const query = { ...error, ...(authorization.state && { state: authorization.state }) }
    return { status: 200, body: { redirect_url: `${authorization.redirectUri}?${new URLSearchParams(query)}` } }
  }

  function revoke(user: User, clientId: string): Reply {
    if (!grants.some((grant) => isOf(user)(grant) && grant.clientId === clientId))
      return fail(404, 'oauth_consent_not_found', 'No active grant found for this client')
    grants = grants.filter((grant) => !(isOf(user)(grant) && grant.clientId === clientId))
    for (const [id, session] of sessions)
      if (session.userId === user.id && session.client === clientId) parts.sessions().delete(id)
    return { status: 204 }
  }

  async function issue(form: URLSearchParams): Promise<Reply> {
    const client = clients.get(form.get('client_id') ?? '')
    if (client?.client_secret !== form.get('client_secret')) return fail(400, 'invalid_credentials', 'bad client')
    if (form.get('grant_type') === 'authorization_code') {
      const authorization = [...authorizations.values()].find(
        ({ code }) => code !== undefined && code === form.get('code'),
      )
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      if (!authorization || authorization.client !== client || challenge !== authorization.challenge)
        return refused('invalid_grant', 'bad code')
      // Compared only where it is sent.
      if ((form.get('redirect_uri') ?? authorization.redirectUri) !== authorization.redirectUri)
        return refused('invalid_grant', 'redirect_uri mismatch')
      authorization.code = undefined
      const facts = {
        userId: authorization.userId ?? '',
        client: client.client_id,
        scope: authorization.scope,
        session: randomUUID(),
      }
      const answer = await openSession(facts)
      if (answer.status !== 200 || !authorization.scope.split(' ').includes('openid')) return answer
      return { status: 200, body: { ...(answer.body as object), id_token: signIdToken(facts, authorization.nonce) } }
    }
    if (form.get('grant_type') !== 'refresh_token') return fail(400, 'invalid_credentials', 'unsupported grant_type')
    const known = refreshTokens.get(form.get('refresh_token') ?? '')
    if (!known || known.client !== client.client_id) return refused('invalid_client', 'bad refresh token')
    if (!parts.sessions().has(known.session)) return fail(400, 'session_not_found', 'session is gone')
    const answer = await openSession(known)
    // A refusal of the hook rolls back, and the refresh token stays.
    if (answer.status === 200) refreshTokens.delete(form.get('refresh_token') ?? '')
    return answer
  }

  /** The hook does not see it; its audience is the app (OpenID Connect Core section 2). */
  function signIdToken(facts: { userId: string; client: string; scope: string }, nonce: string | null): string {
    const user = parts.findUser(facts.userId)!
    const issuedAt = Math.floor(now() / 1000)
    const times = { iat: issuedAt, exp: issuedAt + 3600, auth_time: issuedAt }
    const about = { email: user.email, email_verified: user.isConfirmed }
    const base = { iss: url(), sub: user.id, aud: facts.client, client_id: facts.client, ...times }
    return sign({ ...base, ...(nonce !== null && { nonce }), ...(facts.scope.split(' ').includes('email') && about) })
  }

  async function openSession(facts: {
    userId: string
    client: string
    scope: string
    session: string
  }): Promise<Reply> {
    const user = parts.findUser(facts.userId)!
    const issuedAt = Math.floor(now() / 1000)
    // A refresh changes nothing about when the session began.
    const beganAt = sessions.get(facts.session)?.beganAt ?? issuedAt
    const claims = {
      iss: url(),
      sub: user.id,
      aud: 'authenticated',
      iat: issuedAt,
      exp: issuedAt + 3600,
      email: user.email,
      phone: '',
      ...parts.describeMetadata(user),
      role: 'authenticated',
      aal: 'aal1',
      amr: [{ method: 'oauth_provider/authorization_code', timestamp: beganAt }],
      session_id: facts.session,
      is_anonymous: false,
      client_id: facts.client,
      scope: facts.scope,
    }
    const call = { userId: user.id, claims, method: 'oauth_provider/authorization_code', nowMs: now() }
    const decided = await askHook(server.hook, call)
    if ('error' in decided) return fail(decided.error.http_code, 'unknown', decided.error.message)
    sessions.set(facts.session, { userId: facts.userId, client: facts.client, beganAt })
    parts.sessions().add(facts.session)
    const refreshToken = randomBytes(6).toString('hex')
    refreshTokens.set(refreshToken, facts)
    const access_token = sign(decided.claims)
    return { status: 200, body: { access_token, token_type: 'bearer', expires_in: 3600, refresh_token: refreshToken } }
  }

  return server
}
