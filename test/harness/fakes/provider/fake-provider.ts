import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { challengeOf, findKey, signToken } from './signed-token.ts'

/** Faults of a fake provider, one at a time. */
export type Fault =
  | 'wrong nonce'
  | 'wrong issuer'
  | 'wrong audience'
  | 'expired token'
  | 'unknown key'
  | 'unsigned token'
  | 'symmetric token'
  | 'no id token'
  | 'no subject'
  | 'code refused'
  | 'token endpoint down'
  | 'token endpoint redirects'
  | 'token endpoint answers text'
  | 'token endpoint answers megabytes'
  | 'token endpoint silent'
  | 'api down'
  | 'userinfo of another'
  | 'foreign iss'
  | 'no iss'
  | 'foreign discovery issuer'
  | 'private token endpoint'
  | 'plain token endpoint'

/** A user at a fake provider; the members that a personality does not use are ignored. */
export interface FakeUser {
  sub: string
  email?: string | null
  isEmailVerified?: boolean
  name?: string
  picture?: string
  /** Microsoft: the tenant. */
  tid?: string
  /** Answer of the user on the consent page. */
  denies?: boolean
}

/** An authorization that was given, by its code. */
export interface Grant {
  user: FakeUser
  query: URLSearchParams
  isFirst: boolean
}

/** Facts that decide on a request to the token endpoint or the API. */
export interface FakeCall {
  form: URLSearchParams
  headers: IncomingMessage['headers']
  url: URL
}

/** Traits that make a fake provider behave like a real one, its oddities included. */
export interface Personality {
  /** The public origins that the fake stands for. */
  origins: readonly string[]
  clientId: string
  clientSecret: string
  /** Paths on any of the origins. */
  authorizePath: string
  tokenPath: string
  /** The error of a provider whose user declines. */
  denial: string
  /** Parameters of the answer besides code and state. */
  answerParameters?: Record<string, string>
  /** Checks the client at the token endpoint; undefined, or the error. */
  checkClient: (call: FakeCall, now: Date) => string | undefined
  /** False where the verifier must not be sent. */
  takesPkce: boolean
  /** OpenID: the discovery document for these public endpoints. */
  discovery?: { path: string; build: (paths: { jwks: string; userinfo: string }) => Record<string, unknown> }
  /** OpenID: the claims of the ID token, without `aud`, `iat`, `exp` and the nonce. */
  buildClaims?: (user: FakeUser) => Record<string, unknown>
  hasNonce?: boolean
  userinfoPath?: string
  /** The status and body of a refused code. */
  refuseCode?: { status: number; body: object }
  /** The API of a plain OAuth provider, by path. */
  api?: Record<string, (user: FakeUser, call: FakeCall & { token: string }) => { status: number; body: unknown }>
}

/** Next step of the browser after the consent page. */
export interface BrowserStep {
  method: 'GET' | 'POST'
  url: string
  form?: Record<string, string>
}

/** A provider as a real server on loopback. */
export interface FakeProvider extends AsyncDisposable {
  personality: Personality
  origin: string
  user: FakeUser
  fault: Fault | undefined
  /** Claims besides those of the personality, in the ID token. */
  extraClaims: Record<string, unknown>
  /** Claims that replace those of the ID token. */
  lastClaims: Record<string, unknown>
  /** Opens the authorization URL as the user's browser and answers the consent page. */
  authorize(redirectUrl: string): Promise<BrowserStep>
  /** Answers in place of those of the personality, by path. */
  replies: Map<string, Reply>
  /** The paths that were called, in order. */
  calls: string[]
  /** The connections over which the service called; the browser of a user has its own. */
  connections: Set<unknown>
}

/** The reply of a provider that takes the request and never answers. */
export const SILENT = Symbol('no answer')
export type Reply = { status: number; body: unknown; headers?: Record<string, string> } | typeof SILENT

/** Starts a fake provider with this personality. `now` is the time of its tokens. */
export async function startFakeProvider(personality: Personality, now: () => number): Promise<FakeProvider> {
  const grants = new Map<string, Grant>()
  const tokens = new Map<string, FakeUser>()
  const known = new Set<string>()
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const fake: FakeProvider = {
    personality,
    origin,
    user: { sub: 'person-1', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' },
    fault: undefined,
    extraClaims: {},
    lastClaims: {},
    replies: new Map(),
    calls: [],
    connections: new Set(),
    authorize: async (redirectUrl) => {
      const url = new URL(redirectUrl)
      if (!personality.origins.includes(url.origin) && url.origin !== origin)
        throw new Error(`not a URL of this provider: ${url.origin}`)
      const answer = await fetch(`${origin}${url.pathname}${url.search}`, { redirect: 'manual' })
      if (answer.status === 302) return { method: 'GET', url: answer.headers.get('location') ?? '' }
      if (answer.status !== 200) throw new Error(`the provider refused the request: ${await answer.text()}`)
      return (await answer.json()) as BrowserStep
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function serve(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', origin)
    fake.calls.push(url.pathname)
    if (url.pathname !== personality.authorizePath) fake.connections.add(request.socket)
    const form = new URLSearchParams((await buffer(request)).toString())
    const reply = route({ form, headers: request.headers, url })
    if (reply === SILENT) return
    const isText = typeof reply.body === 'string'
    response.writeHead(reply.status, { 'content-type': isText ? 'text/html' : 'application/json', ...reply.headers })
    response.end(isText ? reply.body : JSON.stringify(reply.body))
  }

  function route(call: FakeCall): Reply {
    const { discovery, authorizePath, tokenPath, userinfoPath, api } = personality
    const path = call.url.pathname
    const given = fake.replies.get(path)
    if (given !== undefined) return given
    if (path === discovery?.path) return { status: 200, body: buildDiscovery() }
    if (path === '/jwks') return { status: 200, body: { keys: [findKey('current').jwk] } }
    if (path === authorizePath) return authorizeCall(call.url)
    if (path === tokenPath) return redeem(call)
    const token = call.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const user = tokens.get(token)
    if (!user) return { status: 401, body: { message: 'Bad credentials' } }
    if (fake.fault === 'api down') return { status: 503, body: {} }
    if (path === userinfoPath) return { status: 200, body: buildUserinfo(user) }
    return api?.[path]?.(user, { ...call, token }) ?? { status: 404, body: {} }
  }

  function buildDiscovery(): Record<string, unknown> {
    const [base = origin] = personality.origins
    const userinfo = `${base}${personality.userinfoPath ?? ''}`
    const document = personality.discovery?.build({ jwks: `${base}/jwks`, userinfo }) ?? {}
    const changes: Partial<Record<Fault, object>> = {
      'foreign discovery issuer': { issuer: 'https://attacker.example' },
      'private token endpoint': { token_endpoint: 'https://169.254.169.254/latest/token' },
      'plain token endpoint': { token_endpoint: 'http://provider.example/token' },
    }
    return { ...document, ...(fake.fault && changes[fake.fault]) }
  }

  function authorizeCall(url: URL): Reply {
    const query = url.searchParams
    if (query.get('client_id') !== personality.clientId) return { status: 400, body: 'unknown client' }
    if (query.get('response_type') !== 'code') return { status: 400, body: 'unsupported response type' }
    const redirectUri = query.get('redirect_uri') ?? ''
    const state = query.get('state') ?? ''
    if (fake.user.denies) {
      const { iss } = personality.answerParameters ?? {}
      return leave(query, redirectUri, { error: personality.denial, state, ...(iss !== undefined && { iss }) })
    }
    const code = randomBytes(12).toString('base64url')
    grants.set(code, { user: { ...fake.user }, query, isFirst: !known.has(fake.user.sub) })
    const extra = { ...personality.answerParameters }
    if (fake.fault === 'foreign iss') extra.iss = 'https://attacker.example'
    if (fake.fault === 'no iss') delete extra.iss
    const step = leave(query, redirectUri, { code, state, ...extra })
    known.add(fake.user.sub)
    return step
  }

  function leave(query: URLSearchParams, redirectUri: string, parameters: Record<string, string>): Reply {
    if (query.get('response_mode') === 'form_post') {
      const [firstName = '', lastName = ''] = (fake.user.name ?? '').split(' ')
      const isFirst = !known.has(fake.user.sub) && parameters.code !== undefined
      const user = isFirst ? { user: JSON.stringify({ name: { firstName, lastName }, email: fake.user.email }) } : {}
      return { status: 200, body: { method: 'POST', url: redirectUri, form: { ...parameters, ...user } } }
    }
    const location = new URL(redirectUri)
    for (const [name, value] of Object.entries(parameters)) location.searchParams.set(name, value)
    return { status: 302, body: {}, headers: { location: location.href } }
  }

  function redeem(call: FakeCall): Reply {
    const broken: Partial<Record<Fault, Reply>> = {
      'token endpoint down': { status: 500, body: 'Internal Server Error' },
      'token endpoint redirects': { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/token' } },
      'token endpoint answers text': { status: 200, body: '<!doctype html>' },
      'token endpoint answers megabytes': { status: 200, body: { filler: 'x'.repeat(1_048_576) } },
      'token endpoint silent': SILENT,
    }
    const broke = fake.fault && broken[fake.fault]
    if (broke) return broke
    const clientError = personality.checkClient(call, new Date(now()))
    if (clientError) return { status: 401, body: { error: clientError } }
    const code = call.form.get('code') ?? ''
    const grant = grants.get(code)
    // A code serves once, also when its redemption fails.
    grants.delete(code)
    const challenge = grant?.query.get('code_challenge')
    const verifier = call.form.get('code_verifier')
    if (!personality.takesPkce && verifier !== null) return { status: 401, body: { error: 'invalid_client' } }
    const isProven = challenge ? verifier !== null && challengeOf(verifier) === challenge : !personality.takesPkce
    const isSame = grant?.query.get('redirect_uri') === call.form.get('redirect_uri')
    if (!grant || !isProven || !isSame || fake.fault === 'code refused')
      return personality.refuseCode ?? { status: 400, body: { error: 'invalid_grant' } }
    const token = `at-${randomBytes(12).toString('base64url')}`
    tokens.set(token, grant.user)
    const idToken = personality.buildClaims && fake.fault !== 'no id token' ? { id_token: buildIdToken(grant) } : {}
    return { status: 200, body: { access_token: token, token_type: 'bearer', expires_in: 3600, ...idToken } }
  }

  function buildIdToken({ user, query }: Grant): string {
    const issuedAt = Math.floor(now() / 1000) - (fake.fault === 'expired token' ? 7200 : 0)
    const nonce = personality.hasNonce === false ? {} : { nonce: query.get('nonce') ?? undefined }
    const claims: Record<string, unknown> = {
      ...personality.buildClaims?.(user),
      ...fake.extraClaims,
      aud: personality.clientId,
      iat: issuedAt,
      exp: issuedAt + 3600,
      ...nonce,
    }
    const changes: Partial<Record<Fault, object>> = {
      'wrong nonce': { nonce: 'another-nonce' },
      'wrong issuer': { iss: 'https://attacker.example' },
      'wrong audience': { aud: 'another-client' },
      'no subject': { sub: undefined },
    }
    const header: Partial<Record<Fault, object>> = {
      'unsigned token': { alg: 'none' },
      'symmetric token': { alg: 'HS256' },
    }
    const key = findKey(fake.fault === 'unknown key' ? 'rogue' : 'current')
    const shown = fake.fault === 'unknown key' ? { kid: 'current' } : {}
    return signToken({ ...claims, ...fake.lastClaims, ...(fake.fault && changes[fake.fault]) }, key, {
      ...shown,
      ...(fake.fault && header[fake.fault]),
    })
  }

  function buildUserinfo({ sub, email, isEmailVerified, name, picture }: FakeUser): unknown {
    const subject = fake.fault === 'userinfo of another' ? 'somebody-else' : sub
    return { sub: subject, name, picture, ...(email && { email, email_verified: isEmailVerified }) }
  }

  return fake
}
