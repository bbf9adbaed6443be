import { createHash, createPublicKey, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { readEs256 } from '../provider/signed-token.ts'
import { type IssuerKey, makeKey, signParts } from '../token-issuer.ts'
import { buildOAuthServer, type OAuthServer } from './oauth-server.ts'

/** Lifetime of a flow of the simulator, in milliseconds, as Supabase Auth has it. */
const FLOW_LIFETIME_MS = 300_000

/** A person at the providers behind the simulator. */
export interface SimulatedPerson {
  sub: string
  email?: string | null
  isEmailVerified?: boolean
  name?: string
  denies?: boolean
}

/** What the simulator does wrong, or does on behalf of an administrator. */
export type SimulatorFault =
  | 'down'
  | 'answers text'
  | 'bans after the callback'
  | 'bans before'
  | 'client token'
  | 'no identity'

interface Identity {
  identity_id: string
  id: string
  user_id: string
  provider: string
  identity_data: Record<string, unknown>
  last_sign_in_at: string
  created_at: string
  updated_at: string
}

export interface User {
  id: string
  email: string
  identities: Identity[]
  isBanned: boolean
  metadata: Record<string, unknown>
}

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
  person: SimulatedPerson
  fault: SimulatorFault | undefined
  /** The key that signs its tokens. */
  key: IssuerKey
  /** Its OAuth server. */
  oauth: OAuthServer
  /** Sessions that are alive. */
  sessions: Set<string>
  /** Acts as the browser: opens the address, answers the provider's page; returns where the app is called. */
  browse(authorizeUrl: string): Promise<string>
}

export interface Reply {
  status: number
  body?: unknown
  headers?: Record<string, string>
}

/** Ids of sessions that an answer closes over, and the person. */
export type AnswerUser = (user: User, session: string) => Reply

/** Starts the simulator. `now` is the time of its flows and tokens. */
export async function startSupabaseSimulator(now: () => number): Promise<SupabaseSimulator> {
  const users = new Map<string, User>()
  const flows = new Map<string, Flow>()
  const refreshTokens = new Map<string, { userId: string; session: string; isSpent: boolean }>()
  const key = makeKey('simulator-key')
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const iso = () => new Date(now()).toISOString()

  const simulator: SupabaseSimulator = {
    url,
    person: { sub: '1', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' },
    fault: undefined,
    key,
    oauth: buildOAuthServer({
      url: () => url,
      now,
      withUser: (token, answer) => withUser(token, answer),
      findUser: (id) => users.get(id),
      describe: (user) => describe(user),
      sign: (claims) => signToken(claims),
      sessions: () => simulator.sessions,
      keys: () => ({ keys: [key.jwk] }),
    }),
    sessions: new Set(),
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
    const reply =
      simulator.fault === 'down'
        ? { status: 503, body: 'upstream unavailable' }
        : ((await simulator.oauth.route(request, at, body)) ?? route(request, at, body))
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

  function route(request: IncomingMessage, at: URL, body: string): Reply {
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    switch (`${request.method} ${at.pathname}`) {
      case 'GET /settings':
        return { status: 200, body: { external: { google: true, github: true }, disable_signup: false } }
      case 'GET /authorize':
        return authorize(at.searchParams)
      case 'GET /provider-page':
        return answerProvider(at.searchParams)
      case 'GET /callback':
        return callBack(at.searchParams)
      case 'POST /token':
        return issue(at.searchParams.get('grant_type') ?? '', body, request)
      case 'GET /user':
        return withUser(bearer, (user) => ({ status: 200, body: describe(user) }))
      case 'POST /logout':
        return withUser(bearer, (_user, session) => {
          simulator.sessions.delete(session)
          return { status: 204 }
        })
      default:
        return { status: 404, body: '404 page not found\n' }
    }
  }

  function authorize(query: URLSearchParams): Reply {
    const provider = query.get('provider') ?? ''
    if (!/^(google|apple|azure|github|facebook|linkedin_oidc|gitlab|discord|custom:[\w-]+)$/.test(provider))
      return fail(400, 'validation_failed', 'Unsupported provider: provider is not enabled')
    const challenge = query.get('code_challenge')
    const method = query.get('code_challenge_method')
    if ((challenge === null) !== (method === null)) return fail(400, 'validation_failed', 'PKCE needs both parameters')
    if (challenge !== null && !/^[A-Za-z0-9._~-]{43,128}$/.test(challenge))
      return fail(400, 'validation_failed', 'code challenge has to be between 43 and 128 characters')
    const state = randomUUID()
    flows.set(state, {
      provider,
      redirectTo: query.get('redirect_to') ?? url,
      challenge: challenge ?? undefined,
      expiresAtMs: now() + FLOW_LIFETIME_MS,
    })
    return redirect(`${url}/provider-page?state=${state}`)
  }

  function answerProvider(query: URLSearchParams): Reply {
    const state = query.get('state') ?? ''
    return redirect(
      `${url}/callback?state=${state}&${simulator.person.denies ? 'error=access_denied' : 'code=at-the-provider'}`,
    )
  }

  function callBack(query: URLSearchParams): Reply {
    const flow = flows.get(query.get('state') ?? '')
    if (!flow || flow.userId !== undefined)
      return redirect(`${url}/site?error=invalid_request&error_code=bad_oauth_state`)
    const error = query.get('error')
    // A provider's own error is passed on without a code, in the query and in the fragment.
    if (error) return redirect(`${addQuery(flow.redirectTo, { error })}#error=${error}&sb=`)
    const user = findOrCreate(flow.provider)
    if (simulator.fault === 'bans before') user.isBanned = true
    if (user.isBanned) {
      const refusal = { error: 'access_denied', error_code: 'user_banned', error_description: 'User is banned' }
      return redirect(`${addQuery(flow.redirectTo, refusal)}#${new URLSearchParams(refusal)}&sb=`)
    }
    flow.userId = user.id
    if (flow.challenge === undefined) {
      const tokens = openSession(user)
      return redirect(
        `${flow.redirectTo}#access_token=${tokens.access_token}&refresh_token=${tokens.refresh_token}&expires_in=3600&sb=&token_type=bearer`,
      )
    }
    flow.code = randomUUID()
    return redirect(addQuery(flow.redirectTo, { code: flow.code }))
  }

  /** Same identity, else same address (also an unverified one, with automatic confirmation), else a new user. */
  function findOrCreate(provider: string): User {
    const { sub, email, isEmailVerified = false, name } = simulator.person
    const all = [...users.values()]
    const address = email ?? `${sub}@without-address.invalid`
    const known = all.find(({ identities }) => identities.some((one) => one.provider === provider && one.id === sub))
    const user = known ?? all.find((one) => one.email === address) ?? createUser(address)
    const data = { sub, name, full_name: name, ...(email && { email, email_verified: isEmailVerified }) }
    const identity = user.identities.find((one) => one.provider === provider && one.id === sub)
    if (identity) Object.assign(identity, { identity_data: data, last_sign_in_at: iso() })
    else {
      const times = { last_sign_in_at: iso(), created_at: iso(), updated_at: iso() }
      user.identities.push({
        identity_id: randomUUID(),
        id: sub,
        user_id: user.id,
        provider,
        identity_data: data,
        ...times,
      })
    }
    user.metadata = { ...user.metadata, ...data }
    return user
  }

  function createUser(email: string): User {
    const user: User = { id: randomUUID(), email, identities: [], isBanned: false, metadata: {} }
    users.set(user.id, user)
    return user
  }

  function issue(grant: string, body: string, request: IncomingMessage): Reply {
    if (!request.headers['content-type']?.includes('json'))
      return fail(400, 'bad_json', 'Could not parse request body as JSON')
    const given = JSON.parse(body) as Record<string, string>
    if (grant === 'pkce') return redeem(given.auth_code ?? '', given.code_verifier ?? '')
    if (grant === 'refresh_token') return refresh(given.refresh_token ?? '')
    return fail(400, 'validation_failed', 'unsupported_grant_type')
  }

  function redeem(code: string, verifier: string): Reply {
    const [state, flow] = [...flows].find(([, one]) => one.code === code) ?? []
    if (!flow || state === undefined)
      return fail(404, 'flow_state_not_found', 'invalid flow state, no valid flow state found')
    if (flow.expiresAtMs <= now()) return fail(422, 'flow_state_expired', 'invalid flow state, flow state has expired')
    // The code is consumed only by success.
    if (createHash('sha256').update(verifier).digest('base64url') !== flow.challenge)
      return fail(400, 'bad_code_verifier', 'code challenge does not match previously saved code verifier')
    flows.delete(state)
    const user = users.get(flow.userId ?? '')!
    if (simulator.fault === 'bans after the callback') user.isBanned = true
    return { status: 200, body: openSession(user) }
  }

  function refresh(token: string): Reply {
    const known = refreshTokens.get(token)
    if (!known) return fail(400, 'refresh_token_not_found', 'Invalid Refresh Token: Refresh Token Not Found')
    if (known.isSpent) return fail(400, 'refresh_token_already_used', 'Invalid Refresh Token: Already Used')
    known.isSpent = true
    return { status: 200, body: openSession(users.get(known.userId)!, known.session) }
  }

  function openSession(user: User, session: string = randomUUID()) {
    simulator.sessions.add(session)
    const issuedAt = Math.floor(now() / 1000)
    const claims = {
      iss: url,
      sub: user.id,
      aud: 'authenticated',
      iat: issuedAt,
      exp: issuedAt + 3600,
      role: 'authenticated',
      session_id: session,
      ...(simulator.fault === 'client token' && { client_id: 'some-client', scope: 'openid' }),
    }
    const refreshToken = randomBytes(6).toString('hex')
    refreshTokens.set(refreshToken, { userId: user.id, session, isSpent: false })
    return {
      access_token: signToken(claims),
      token_type: 'bearer',
      expires_in: 3600,
      expires_at: issuedAt + 3600,
      refresh_token: refreshToken,
      user: describe(user),
    }
  }

  function signToken(claims: object): string {
    return signParts({ alg: 'ES256', typ: 'JWT', kid: key.jwk.kid }, claims, key)
  }

  function withUser(token: string, answer: AnswerUser): Reply {
    if (token === '') return fail(401, 'no_authorization', 'This endpoint requires a valid Bearer token')
    const claims = readEs256(token, createPublicKey(key.privateKey)) as { session_id: string; sub: string } | undefined
    if (!claims) return fail(403, 'bad_jwt', 'invalid JWT: unable to parse or verify signature')
    if (!simulator.sessions.has(claims.session_id))
      return fail(403, 'session_not_found', 'Session from session_id claim in JWT does not exist')
    const user = users.get(claims.sub)
    if (!user) return fail(403, 'user_not_found', 'User from sub claim in JWT does not exist')
    if (user.isBanned) return fail(403, 'user_banned', 'User is banned')
    return answer(user, claims.session_id)
  }

  function describe({ id, email, identities, metadata }: User) {
    return {
      id,
      aud: 'authenticated',
      role: 'authenticated',
      email,
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

function redirect(location: string): Reply {
  return { status: 302, headers: { location } }
}

function addQuery(url: string, parameters: Record<string, string>): string {
  const target = new URL(url)
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value)
  return target.href
}

/** An error in the shape of a server without a version; `toVersion` turns it into the other one. */
export function fail(status: number, code: string, message: string): Reply {
  return { status, body: { code: status, error_code: code, msg: message }, headers: { 'x-sb-error-code': code } }
}

function toVersion(body: unknown): unknown {
  const { error_code: code, msg: message } = (body ?? {}) as Record<string, unknown>
  return code === undefined ? body : { code, message }
}
